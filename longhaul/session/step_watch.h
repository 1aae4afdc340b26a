#pragma once

#include <cstdint>
#include <functional>
#include <memory>

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

  // Starts `watch`, in addition to others. It ends when the result is destroyed; a call of `passed` may still be
  // running then. Each step costs one more read of the variable, on servers a round trip. InvalidArgumentError: `step`
  // is not an int64 variable, or `every` is not above 0. On servers also what a run throws.
  [[nodiscard]] virtual std::shared_ptr<const void> watch_steps(StepWatch watch) = 0;

  // Whether only this session makes steps. False: others change the same variables, and a watch learns of their steps
  // only after this session's next run.
  virtual bool sees_all_steps() const = 0;

  // Whether a run of this session that writes variables has begun and not ended: a step, as far as the session knows.
  virtual bool is_step_under_way() const = 0;

  // How many runs of this session that write variables have ended, well or by an error. Does not wait.
  virtual uint64_t steps_ended() const = 0;
};

}  // namespace longhaul
