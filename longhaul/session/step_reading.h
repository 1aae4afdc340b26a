#pragma once

#include <cstdint>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

// A global step that a run has brought to this process.
struct ReadStep {
  int64_t step = 0;
  Seconds ago{0};  // since that run began: the step is later by now, or was already
};

// Implemented by sessions on servers (SessionCapabilities::step_reading): where the tasks that know the step are gone,
// it is the best that is known. Any thread.
class StepReading {
 public:
  virtual ~StepReading() = default;

  // The newest value of the graph's global step that a run of this session has fetched, whoever made the run. nullopt:
  // none has.
  virtual std::optional<ReadStep> newest_step() const = 0;
};

}  // namespace longhaul
