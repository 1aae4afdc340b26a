#pragma once

#include <cstdint>

#include "longhaul/base/error.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// Implemented by sessions that can find out later what became of a step (SessionCapabilities::step_fates). Any thread.
class StepFates {
 public:
  virtual ~StepFates() = default;

  // What became of the step of an error that said kNotKnown (Error::failed_step()). Asks the step's tasks, and again
  // while they do not know themselves, for `at_most`; also after the session was lost or closed. kNotKnown: they cannot
  // be reached, or it is too long ago.
  virtual StepFate find_fate(int64_t step, Seconds at_most) = 0;
};

}  // namespace longhaul
