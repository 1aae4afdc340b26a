#pragma once

#include <cstdint>
#include <functional>

#include "longhaul/graph/operation.h"

namespace longhaul {

// Who wants to know how far a training has come, at the moment when it has.
struct StepWatch {
  Output step;  // the global step, an int64 variable or the reading of one
  int64_t every = 1;
  // Called on the thread that made the step, before its run returns, each time the step reaches or passes another
  // multiple of `every`. It may run the session, but must make no step. What it throws is logged.
  std::function<void()> passed;
};

// Sessions whose steps can be watched (SessionCapabilities::step_watching). Any thread.
class StepWatching {
 public:
  virtual ~StepWatching() = default;

  // From now on, instead of who watched before. Costs each step a look at the variable. InvalidArgumentError: `step` is
  // no variable, or `every` is not above 0.
  virtual void watch_steps(StepWatch watch) = 0;
  // A call under way may still be at work when this returns.
  virtual void stop_watching() = 0;
};

}  // namespace longhaul
