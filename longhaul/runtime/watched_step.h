#pragma once

#include <atomic>

#include "longhaul/runtime/variable_store.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

// A StepWatch at work. Any thread.
class WatchedStep {
 public:
  // InvalidArgumentError: as StepWatching::watch_steps().
  WatchedStep(StepWatch watch, VariableStore& variables);

  // After each run that has written variables.
  void look();

 private:
  int64_t now() const;  // 0: it has no value

  const StepWatch watch_;
  VariableSlot& step_;
  std::atomic<int64_t> last_;
};

}  // namespace longhaul
