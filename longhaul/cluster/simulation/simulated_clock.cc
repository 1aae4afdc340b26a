#include "longhaul/cluster/simulation/simulated_clock.h"

#include <algorithm>
#include <memory>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr Seconds kMoment{0.0005};
constexpr Seconds kMostAtOnce{0.5};  // while other threads may be at work
constexpr Seconds kMostInSteps{3 * 3600.0};
constexpr Seconds kMostInLeaps{366 * 24 * 3600.0};

thread_local const SimulatedClock* clock_of_job = nullptr;  // this thread runs a job of around()

}  // namespace

void SimulatedClock::at(Seconds time, std::function<void()> event) {
  MutexLock lock(mutex_);
  events_.emplace(std::max(time, now_), std::move(event));
  ++happened_;
}

void SimulatedClock::settle() {
  while (run_one()) {
  }
}

bool SimulatedClock::run_until(const std::function<bool()>& done, Seconds most) {
  const Seconds end = now() + most;
  Mutex mutex;
  CondVar never;
  while (!done()) {
    if (now() >= end) return false;
    MutexLock lock(mutex);
    wait_until(never, mutex, end);  // wait: makes the events happen, and passes time up to `end`
  }
  return true;
}

void SimulatedClock::drop_events() {
  std::multimap<Seconds, std::function<void()>> dropped;
  MutexLock lock(mutex_);
  dropped.swap(events_);
}

Seconds SimulatedClock::now() const {
  MutexLock lock(mutex_);
  return now_;
}

// The lock of the waiting code is let go by hand: the events take it, too.
void SimulatedClock::wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) NO_THREAD_SAFETY_ANALYSIS {
  const bool is_job = clock_of_job == this;
  if (is_job) add_at_work(-1);
  const std::unique_ptr<SimulatedClock, void (*)(SimulatedClock*)> back_to_work(
      is_job ? this : nullptr, [](SimulatedClock* clock) { clock->add_at_work(1); });
  const Seconds end = now() + timeout;
  mutex.unlock();
  const uint64_t seen = happened();
  const bool ran = run_one();
  mutex.lock();
  if (ran) return;
  // wait: lets other threads go on; nothing that happens meanwhile is missed, because time passes only after it
  if (threads_ == Threads::kSeveral) cond.wait_for(mutex, kMoment);
  pass_time(end, seen);
}

bool SimulatedClock::run_one() {
  std::function<void()> event;
  {
    MutexLock lock(mutex_);
    if (events_.empty() || events_.begin()->first > now_) return false;
    event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    ++running_;
    ++happened_;
  }
  event();
  event = nullptr;
  MutexLock lock(mutex_);
  --running_;
  ++happened_;
  return true;
}

void SimulatedClock::pass_time(Seconds until, uint64_t seen) {
  MutexLock lock(mutex_);
  const bool may_compute = threads_ == Threads::kSeveral;
  if (happened_ != seen || (may_compute && running_ > 0) || at_work_ > 0) return;
  if (!events_.empty()) until = std::min(until, events_.begin()->first);
  if (may_compute) until = std::min(until, now_ + kMostAtOnce);
  if (until <= now_) return;
  now_ = until;
  ++happened_;
  if (now_ <= (may_compute ? kMostInSteps : kMostInLeaps)) return;
  throw InternalError("what is waited for in the simulation will never happen: too much time has passed");
}

void SimulatedClock::add_at_work(int by) {
  MutexLock lock(mutex_);
  at_work_ += by;
  ++happened_;
}

std::function<void()> SimulatedClock::around(std::function<void()> job) {
  add_at_work(1);
  const std::shared_ptr<void> end(nullptr, [this](void*) { add_at_work(-1); });
  return [this, end, job = std::move(job)] {
    clock_of_job = this;
    job();
    clock_of_job = nullptr;
  };
}

uint64_t SimulatedClock::happened() const {
  MutexLock lock(mutex_);
  return happened_;
}

}  // namespace longhaul
