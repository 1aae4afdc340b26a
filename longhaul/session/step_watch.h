#pragma once

#include <cstdint>
#include <functional>

#include "longhaul/graph/operation.h"

namespace longhaul {

// A request to be notified when training reaches certain steps.
struct StepWatch {
  Output step;  // the global step: an int64 variable or a read of one
  int64_t every = 1;
  // Called each time the step reaches or passes another multiple of `every`, on the thread that made the step, before
  // its run returns. It may run the session, but must not make a step. Its exceptions are logged.
  std::function<void()> passed;
};

// Implemented by sessions whose steps can be watched (SessionCapabilities::step_watching). Any thread.
class StepWatching {
 public:
  virtual ~StepWatching() = default;

  // Starts `watch`, which replaces the previous watch. Each step then costs one more read of the variable.
  // InvalidArgumentError: `step` is not a variable, or `every` is not above 0.
  virtual void watch_steps(StepWatch watch) = 0;
  // A call of `passed` may still be running when this returns.
  virtual void stop_watching() = 0;
};

}  // namespace longhaul
