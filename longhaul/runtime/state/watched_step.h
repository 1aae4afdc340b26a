#pragma once

#include "longhaul/base/mutex.h"
#include "longhaul/runtime/state/variable_store.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

// Calls a StepWatch's `passed` when the step reaches a multiple of `every`. Any thread.
class WatchedStep {
 public:
  // InvalidArgumentError: as for StepWatching::watch_steps().
  WatchedStep(StepWatch watch, VariableStore& variables, const std::string& default_container = kLocalContainer);

  // After each run that has written variables.
  void look() EXCLUDES(mutex_);

 private:
  struct Steps {
    int64_t before = 0, now = 0;
  };
  Steps advance() EXCLUDES(mutex_);  // the last step seen, and the current one, which replaces it
  int64_t now() const;               // 0: it has no value

  const StepWatch watch_;
  const std::shared_ptr<VariableSlot> step_;
  Mutex mutex_;  // not held while passed() is called
  int64_t last_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
