#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/train/saving/saver.h"

namespace longhaul {

// The steps that a run made after its newest checkpoint.
struct UnsavedSteps {
  int64_t first = 0, last = 0;
  double share = 1;  // of all steps that the run made
  bool operator==(const UnsavedSteps&) const = default;
};

// `start` is the step at which the run began, `now` the current one. The checkpoints considered are the one that the
// saver saved or restored last, and those in the directory of `save_path`, whoever saved them. nullopt: there are no
// such steps, or it is not known whether there are, for example because a checkpoint's name has no step.
std::optional<UnsavedSteps> unsaved_steps(const Saver& saver, const std::string& save_path,
                                          std::optional<int64_t> start, std::optional<int64_t> now);

// "step 5 is", "steps 5 to 9 are"
std::string describe(const UnsavedSteps& steps);

// The same of a run that ends with an error, with the newest checkpoint that the saver saved or restored.
std::string describe_lost(const UnsavedSteps& steps, const Saver& saver);

}  // namespace longhaul
