#include "longhaul/runtime/state/step_gate.h"

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {
namespace {

thread_local Seconds wait_of_this_thread{0};

}  // namespace

Seconds StepGate::last_wait() {
  return wait_of_this_thread;
}

void StepGate::enter(Seconds deadline) {
  MutexLock lock(mutex_);
  while (!waiting_.empty()) {
    hold_up();
    if (deadline.count() > 0 && clock_.now() > deadline) {
      throw DeadlineExceededError("a step timed out while it waited for a snapshot");
    }
    ++outside_;
    if (deadline.count() > 0) {
      clock_.wait_for(changed_, mutex_, deadline - clock_.now());  // wait: the run's time
    } else {
      changed_.wait(mutex_);  // wait: the snapshot ends it, when it is taken or given up
    }
    --outside_;
  }
  ++inside_;
}

void StepGate::hold_up() {
  const Seconds now = clock_.now();
  for (Waiting* waiting : waiting_) {
    if (!waiting->alone_until) waiting->alone_until = now;
  }
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
  hold_up();
  for (Waiting* waiting : waiting_) {
    (*waiting->take)();
    waiting->taken = true;
  }
  waiting_.clear();
  changed_.notify_all();
}

bool StepGate::take_or_ask(Waiting* waiting) {
  const MutexLock lock(mutex_);
  if (inside_ > 0) {
    waiting_.push_back(waiting);
    if (outside_ > 0) hold_up();
    return false;
  }
  (*waiting->take)();
  return true;
}

bool StepGate::is_taken_by(Waiting* waiting, Seconds until) {
  const MutexLock lock(mutex_);
  while (!waiting->taken) {
    const Seconds left = until - clock_.now();
    if (left <= Seconds{0}) return false;
    clock_.wait_for(changed_, mutex_, left);  // wait: until the next warning, or the snapshot's timeout
  }
  return true;
}

bool StepGate::withdraw(Waiting* waiting) {
  const MutexLock lock(mutex_);
  if (waiting->taken) return false;
  waiting_.erase(std::find(waiting_.begin(), waiting_.end(), waiting));
  changed_.notify_all();
  return true;
}

void StepGate::snapshot(const std::function<void()>& take, Seconds timeout, Seconds warn_after) {
  const Seconds start = clock_.now(), deadline = start + timeout;
  Waiting waiting{&take};
  wait_of_this_thread = Seconds{0};
  if (take_or_ask(&waiting)) return;
  while (!is_taken_by(&waiting, std::min(deadline, clock_.now() + warn_after))) {
    const Seconds now = clock_.now();
    if (now < deadline) {
      log_warning("a snapshot has waited {:.0f} s for a step that writes variables; it is taken when the step ends",
                  (now - start).count());
    } else if (withdraw(&waiting)) {
      throw DeadlineExceededError("a snapshot timed out while it waited for a step to finish its writes");
    }
  }
  wait_of_this_thread = std::max(Seconds{0}, waiting.alone_until.value_or(start) - start);
}

}  // namespace longhaul
