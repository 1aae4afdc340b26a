#include "longhaul/runtime/step_gate.h"

#include <algorithm>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"

namespace longhaul {

void StepGate::enter(Seconds deadline) {
  MutexLock lock(mutex_);
  while (!waiting_.empty()) {
    if (deadline.count() > 0 && Clock::real().now() > deadline) {
      throw DeadlineExceededError("a step waited too long for a snapshot to be taken");
    }
    changed_.wait_for(mutex_, deadline.count() > 0 ? deadline - Clock::real().now() : Seconds{1});
  }
  ++inside_;
}

void StepGate::leave() {
  MutexLock lock(mutex_);
  --inside_;
  if (inside_ == 0 && !waiting_.empty()) take_waiting();
}

bool StepGate::is_shut() {
  MutexLock lock(mutex_);
  return !waiting_.empty();
}

void StepGate::take_waiting() {
  for (Waiting* waiting : waiting_) {
    (*waiting->take)();
    waiting->taken = true;
  }
  waiting_.clear();
  changed_.notify_all();
}

void StepGate::snapshot(const std::function<void()>& take, Seconds timeout) {
  const Seconds deadline = Clock::real().now() + timeout;
  MutexLock lock(mutex_);
  if (inside_ == 0) return take();
  Waiting waiting{&take};
  waiting_.push_back(&waiting);
  while (!waiting.taken) {
    const Seconds left = deadline - Clock::real().now();
    if (left <= Seconds{0}) {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &waiting));
      changed_.notify_all();
      throw DeadlineExceededError("a snapshot waited too long for a step to finish its writes");
    }
    changed_.wait_for(mutex_, left);
  }
}

}  // namespace longhaul
