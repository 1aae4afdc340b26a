#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>

#include "longhaul/base/clock.h"

namespace longhaul {

// The time of a simulation, in which events happen: messages arrive, lines break. Nobody sleeps: whoever waits on this
// clock meanwhile makes the events happen that are due, on its own thread, without its lock; once none is due, the wait
// lets time pass, to the next event or the end of the wait. So a test with one thread is deterministic.
//
// With several threads, time passes only after a moment of real time in which nothing has happened, and by half a
// second at most, because a thread may be computing; and not at all while it is known that one does (AtWork), while the
// system says that one runs, or waits for a processor or a disk (some_thread_is_busy), or while one that waits has not
// looked since something has happened. So a test must not wait for simulated time in a loop that does not sleep. Any
// thread may call.
class SimulatedClock : public Clock {
 public:
  enum class Threads { kOne, kSeveral };

  explicit SimulatedClock(Threads threads = Threads::kOne) : threads_(threads) {}

  // Events of one time happen in this order.
  void at(Seconds time, std::function<void()> event) EXCLUDES(mutex_);
  void soon(std::function<void()> event) { at(now(), std::move(event)); }

  // Makes all events happen that are due, and those that they cause.
  void settle() EXCLUDES(mutex_);
  // The same, and lets time pass, until `done` says true; false: `most` has passed.
  bool run_until(const std::function<bool()>& done, Seconds most) EXCLUDES(mutex_);
  void drop_events() EXCLUDES(mutex_);

  // From now on this thread is known to be at work: time passes only while it waits on this clock. Destroyed by it.
  class AtWork {
   public:
    explicit AtWork(SimulatedClock& clock);
    ~AtWork();
    AtWork(const AtWork&) = delete;
    AtWork& operator=(const AtWork&) = delete;

   private:
    SimulatedClock& clock_;
  };
  // The job, which another thread is to run: the same from this moment to the job's end.
  std::function<void()> around(std::function<void()> job) EXCLUDES(mutex_);

  Seconds now() const override EXCLUDES(mutex_);
  double wall_time() const override { return 1.6e9 + now().count(); }
  // InternalError: a year has passed, or hours with several threads: what is waited for will never happen.
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex);

 private:
  class Waiter;
  bool run_one() EXCLUDES(mutex_);  // false: none is due
  void pass_time(Seconds until, uint64_t seen) EXCLUDES(mutex_);
  bool is_at_rest(uint64_t seen) const REQUIRES(mutex_);  // as far as this clock knows
  void add_at_work(int by) EXCLUDES(mutex_);

  const Threads threads_;
  mutable Mutex mutex_;
  Seconds now_ GUARDED_BY(mutex_){1000};
  std::multimap<Seconds, std::function<void()>> events_ GUARDED_BY(mutex_);
  int running_ GUARDED_BY(mutex_) = 0;
  int at_work_ GUARDED_BY(mutex_) = 0;                  // threads and jobs that do not wait
  std::multiset<uint64_t> waiters_ GUARDED_BY(mutex_);  // of each thread that waits: what had happened when it looked
  uint64_t happened_ GUARDED_BY(mutex_) = 0;            // counts what may make a wait unnecessary
};

}  // namespace longhaul
