#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/session/step_fetch.h"

namespace longhaul {

// What a session is asked to compute with its next training steps. Any thread.
class StepFetches : public StepFetching {
 public:
  void request_step_fetch(StepFetch request) override EXCLUDES(mutex_);
  void withdraw_step_fetch(const void* requester) override EXCLUDES(mutex_);
  void withdraw_all() EXCLUDES(mutex_);

  // Whether anything is asked for. Costs a step nothing.
  bool is_any_due() const { return is_any_due_.load(std::memory_order_relaxed); }

  // What the step that is about to be made is to compute as well, all requests that go along with it in one; null:
  // none does.
  std::shared_ptr<const StepFetch> take(const Session::Request& step) EXCLUDES(mutex_);

 private:
  using Requests = std::vector<std::shared_ptr<const StepFetch>>;
  Requests take_those_that_go_along(const Session::Request& step) EXCLUDES(mutex_);

  std::atomic<bool> is_any_due_{false};
  Mutex mutex_;
  Requests due_ GUARDED_BY(mutex_);  // one of each requester
};

}  // namespace longhaul
