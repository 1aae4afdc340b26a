#pragma once

#include <cstdint>

#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// Implemented by sessions that can find out later what became of a step (SessionCapabilities::step_fates). Any thread.
class StepFates {
 public:
  virtual ~StepFates() = default;

  // For an error that said kNotKnown or kCommitted (Error::failed_step()): returns what became of its step. Asks the
  // step's tasks, and repeats that for as long as `at_most` while they do not know it themselves. Works after the
  // session was lost or closed, too. kNotCommitted: also if it was committed, and a task that it wrote to was started
  // anew since. kNotKnown: the tasks cannot be reached, or the step is too long ago.
  virtual StepFate find_fate(int64_t step, Seconds at_most) = 0;
};

}  // namespace longhaul
