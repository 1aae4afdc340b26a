#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "longhaul/train/saving/saver.h"

namespace longhaul {

// The steps that a training made after its newest checkpoint.
struct UnsavedSteps {
  int64_t first = 0, last = 0;
  double share = 1;  // of the steps that it made
  bool operator==(const UnsavedSteps&) const = default;
};

// `start`: the step that it began with; `now`: the one it is at. Checkpoints are those that
// the saver saved or restored last, and that the directory of `save_path` has, whoever saved them. nullopt: there are
// no such steps, or it is not known whether there are, as without a step in a checkpoint's name.
std::optional<UnsavedSteps> unsaved_steps(const Saver& saver, const std::string& save_path,
                                          std::optional<int64_t> start, std::optional<int64_t> now);

// "step 5 is", "steps 5 to 9 are"
std::string describe(const UnsavedSteps& steps);

}  // namespace longhaul
