#include "longhaul/cluster/simulation/simulated_clock.h"

#include <algorithm>
#include <memory>

#include "longhaul/base/error.h"
#include "longhaul/cluster/simulation/busy_threads.h"

namespace longhaul {
namespace {

constexpr Seconds kMoment{0.0005};
constexpr Seconds kMostAtOnce{0.5};  // while other threads may be at work
constexpr Seconds kMostInSteps{3 * 3600.0};
constexpr Seconds kMostInLeaps{366 * 24 * 3600.0};

thread_local const SimulatedClock* clock_of_work = nullptr;  // this thread is at work

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

// This thread, while it waits.
class SimulatedClock::Waiter {
 public:
  explicit Waiter(SimulatedClock& clock) : clock_(clock), is_known_(clock_of_work == &clock) {
    MutexLock lock(clock_.mutex_);
    seen_ = clock_.happened_;
    clock_.waiters_.insert(seen_);
    if (is_known_) --clock_.at_work_;
  }
  ~Waiter() {
    MutexLock lock(clock_.mutex_);
    clock_.waiters_.erase(clock_.waiters_.find(seen_));
    if (is_known_) ++clock_.at_work_;
  }
  Waiter(const Waiter&) = delete;

  uint64_t seen() const { return seen_; }

 private:
  SimulatedClock& clock_;
  const bool is_known_;
  uint64_t seen_ = 0;
  const ThreadAtRest rest_;
};

// The lock of the waiting code is let go by hand: the events take it, too. What happens from here on is seen by it,
// since nobody can change what it waits for before the lock is let go, and it looks again after the wait.
void SimulatedClock::wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) NO_THREAD_SAFETY_ANALYSIS {
  const Waiter waiter(*this);
  const Seconds end = now() + timeout;
  mutex.unlock();
  const bool ran = run_one();
  mutex.lock();
  if (ran) return;
  // wait: lets other threads go on; nothing that happens meanwhile is missed, because time passes only after it
  if (threads_ == Threads::kSeveral) cond.wait_for(mutex, kMoment);
  pass_time(end, waiter.seen());
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

// The system is asked last: that takes longer. What happens meanwhile is seen by the second look.
void SimulatedClock::pass_time(Seconds until, uint64_t seen) {
  const bool may_compute = threads_ == Threads::kSeveral;
  if (may_compute) {
    {
      MutexLock lock(mutex_);
      if (!is_at_rest(seen)) return;
    }
    if (some_thread_is_busy()) return;
  }
  MutexLock lock(mutex_);
  if (!is_at_rest(seen)) return;
  if (!events_.empty()) until = std::min(until, events_.begin()->first);
  if (may_compute) until = std::min(until, now_ + kMostAtOnce);
  if (until <= now_) return;
  now_ = until;
  ++happened_;
  if (now_ <= (may_compute ? kMostInSteps : kMostInLeaps)) return;
  throw InternalError("what is waited for in the simulation will never happen: too much time has passed");
}

bool SimulatedClock::is_at_rest(uint64_t seen) const {
  if (happened_ != seen || at_work_ > 0) return false;
  return threads_ == Threads::kOne || (running_ == 0 && *waiters_.begin() == happened_);
}

void SimulatedClock::add_at_work(int by) {
  MutexLock lock(mutex_);
  at_work_ += by;
  ++happened_;
}

SimulatedClock::AtWork::AtWork(SimulatedClock& clock) : clock_(clock) {
  clock_of_work = &clock;
  clock_.add_at_work(1);
}

SimulatedClock::AtWork::~AtWork() {
  clock_of_work = nullptr;
  clock_.add_at_work(-1);
}

std::function<void()> SimulatedClock::around(std::function<void()> job) {
  add_at_work(1);
  const std::shared_ptr<void> end(nullptr, [this](void*) { add_at_work(-1); });
  return [this, end, job = std::move(job)] {
    clock_of_work = this;
    job();
    clock_of_work = nullptr;
  };
}

}  // namespace longhaul
