#include "longhaul/runtime/state/step_gate.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/program_in_step.h"
#include "longhaul/base/waiting.h"

namespace longhaul {
namespace {

thread_local Seconds wait_of_this_thread{0};
thread_local const StepGate* ahead_in = nullptr;  // the gate that this thread has entered for its next enter()

}  // namespace

Seconds StepGate::last_wait() {
  return wait_of_this_thread;
}

void StepGate::enter(Seconds deadline, uint64_t step) {
  refuse_within_step("runs operations that write variables");
  if (is_ahead()) {
    ahead_in = nullptr;
    return;
  }
  {
    MutexLock lock(mutex_);
    if (doors_ == 0) {
      ++inside_;
      return;
    }
  }
  enter_when_open(deadline, step);
}

void StepGate::enter_when_open(Seconds deadline, uint64_t step) {
  MutexLock lock(mutex_);
  for (drop_expired(); doors_ > 0 && !is_guest(step); drop_expired()) {
    hold_up();
    if (deadline.count() > 0 && clock_.now() > deadline) {
      throw DeadlineExceededError("a step timed out while it waited for a snapshot");
    }
    ++outside_;
    wait_outside(deadline);
    --outside_;
  }
  ++inside_;
}

void StepGate::wait_outside(Seconds deadline) {
  const longhaul::Waiting noted("a snapshot that is being taken");
  std::optional<Seconds> until;
  if (deadline.count() > 0) until = deadline;
  for (const auto& [id, lease] : leases_) until = std::min(until.value_or(lease.end), lease.end);
  if (until) {
    clock_.wait_for(changed_, mutex_, *until - clock_.now());  // wait: the run's time, or the end of a lease
  } else {
    changed_.wait(mutex_);  // wait: the snapshot ends it, when it is taken or given up
  }
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
  if (inside_ == 0 && doors_ > 0) take_waiting();
}

void StepGate::enter_ahead() {
  if (ahead_in != nullptr) {
    throw FailedPreconditionError("a step is begun while this thread is making another one: end that first");
  }
  enter();
  ahead_in = this;
}

void StepGate::leave_ahead() {
  if (!is_ahead()) return;
  ahead_in = nullptr;
  leave();
}

bool StepGate::is_ahead() const {
  return ahead_in == this;
}

bool StepGate::is_shut() {
  MutexLock lock(mutex_);
  drop_expired();
  return doors_ > 0;
}

void StepGate::take_waiting() {
  hold_up();
  for (Waiting* waiting : waiting_) {
    (*waiting->take)();
    waiting->taken = true;
  }
  waiting_.clear();
  count_doors();
  changed_.notify_all();
}

bool StepGate::take_or_ask(Waiting* waiting) {
  const MutexLock lock(mutex_);
  if (inside_ > 0) {
    waiting_.push_back(waiting);
    count_doors();
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
  count_doors();
  changed_.notify_all();
  return true;
}

void StepGate::snapshot(const std::function<void()>& take, Seconds timeout, Seconds warn_after) {
  refuse_within_step("saves, or reads all variables at one moment");
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

void StepGate::lose(const std::string& id) {
  leases_.erase(id);
  count_doors();
  changed_.notify_all();
}

void StepGate::count_doors() {
  doors_ = waiting_.size() + leases_.size();
}

void StepGate::drop_expired() {
  if (leases_.empty()) return;
  const Seconds now = clock_.now();
  if (std::erase_if(leases_, [now](const auto& lease) { return lease.second.end <= now; }) == 0) return;
  count_doors();
  changed_.notify_all();
}

StepGate::Door StepGate::shut(const std::string& id, Seconds lease, Seconds timeout, Seconds wait_for_another) {
  const MutexLock lock(mutex_);
  if (!is_left_to(id, clock_.now() + wait_for_another)) return Door::kAnothers;
  const Seconds now = clock_.now(), end = now + lease;
  const Door door = leases_.contains(id) ? Door::kRenewed : Door::kShut;
  leases_[id].end = end;
  count_doors();
  if (is_empty_before(std::min(end, now + timeout)) && leases_.contains(id)) return door;
  lose(id);
  throw DeadlineExceededError(fmt::format(
      "the snapshot {} of several tasks timed out while it waited for a step to finish its writes on this one", id));
}

bool StepGate::is_left_to(const std::string& id, Seconds until) {
  for (drop_expired(); !leases_.empty() && !leases_.contains(id); drop_expired()) {
    const Seconds now = clock_.now();
    if (now >= until) return false;
    const Seconds left = std::min(until, leases_.begin()->second.end) - now;
    clock_.wait_for(changed_, mutex_, left);  // wait: for the other's take, the end of its lease, or the caller's time
  }
  return true;
}

bool StepGate::is_empty_before(Seconds until) {
  while (inside_ > 0) {
    const Seconds left = until - clock_.now();
    if (left <= Seconds{0}) return false;
    clock_.wait_for(changed_, mutex_, left);  // wait: for the last step to leave, for the caller's timeout or lease
  }
  return true;
}

void StepGate::need_shut(const std::string& id) {
  drop_expired();
  if (leases_.contains(id)) return;
  throw AbortedError(fmt::format(
      "the snapshot {} of several tasks no longer keeps this one from making steps: its lease ended. Take another",
      id));
}

void StepGate::let_in(const std::string& id, uint64_t step) {
  const MutexLock lock(mutex_);
  need_shut(id);
  leases_[id].guests.insert(step);
  changed_.notify_all();
}

bool StepGate::is_guest(uint64_t step) {
  if (step == 0) return false;
  return std::any_of(leases_.begin(), leases_.end(),
                     [step](auto& lease) { return lease.second.guests.contains(step); });
}

// The id is looked for again after the wait: its lease may have ended meanwhile.
void StepGate::take(const std::string& id, const std::function<void()>& take, Seconds timeout) {
  const MutexLock lock(mutex_);
  need_shut(id);
  const bool is_empty = is_empty_before(clock_.now() + timeout);
  need_shut(id);
  if (is_empty) take();
  lose(id);
  if (is_empty) return;
  throw DeadlineExceededError(
      fmt::format("the snapshot {} of several tasks timed out while it waited for a step to finish its writes", id));
}

void StepGate::open(const std::string& id) {
  const MutexLock lock(mutex_);
  lose(id);
}

}  // namespace longhaul
