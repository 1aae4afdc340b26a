#include "longhaul/session/step_fetches.h"

#include <utility>

namespace longhaul {

void StepFetches::request_step_fetch(StepFetch request) {
  auto due = std::make_shared<const StepFetch>(std::move(request));
  MutexLock lock(mutex_);
  due_.swap(due);  // the previous one is destroyed without the lock
}

void StepFetches::withdraw_step_fetch() {
  std::shared_ptr<const StepFetch> none;
  MutexLock lock(mutex_);
  due_.swap(none);
}

std::shared_ptr<const StepFetch> StepFetches::take(const Session::Request& step) {
  MutexLock lock(mutex_);
  if (due_ == nullptr || !goes_along(due_->fetches, step)) return nullptr;
  return std::exchange(due_, nullptr);
}

}  // namespace longhaul
