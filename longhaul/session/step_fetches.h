#pragma once

#include <memory>

#include "longhaul/base/mutex.h"
#include "longhaul/session/step_fetch.h"

namespace longhaul {

// What a session is asked to compute with its next training step. Any thread.
class StepFetches : public StepFetching {
 public:
  void request_step_fetch(StepFetch request) override EXCLUDES(mutex_);
  void withdraw_step_fetch() override EXCLUDES(mutex_);

  // What the step that is about to be made is to compute as well; null: nothing, or nothing that goes along with it.
  std::shared_ptr<const StepFetch> take(const Session::Request& step) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  std::shared_ptr<const StepFetch> due_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
