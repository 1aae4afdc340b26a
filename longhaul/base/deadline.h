#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// A point in time that may be set, or brought forward, while other threads wait for something: the end of a
// preemption's grace period. It is never postponed. Any thread may call.
class Deadline {
 public:
  explicit Deadline(Clock& clock) : clock_(clock) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // Sets the deadline to `time` from now, unless it is already sooner. Notifies the waits. Do not call it while holding
  // a lock that one of the waits or notices takes.
  void bring_forward(Seconds time) EXCLUDES(notices_mutex_);

  bool is_set() const { return at_ != kNever; }
  std::optional<Seconds> left() const;  // negative: past; nullopt: not set

  // Calls `notify` at each bring_forward(), as long as the notice exists: for waits that ask half_time(), and must ask
  // again. Construct and destroy it without holding a lock that `notify` takes. `notify` only notifies: it must not
  // throw, wait, or use this deadline's notices.
  class Notice {
   public:
    Notice(const Deadline* deadline, std::function<void()> notify);  // nullptr: no deadline
    ~Notice();
    Notice(const Notice&) = delete;
    Notice& operator=(const Notice&) = delete;

   private:
    friend class Deadline;

    const Deadline* const deadline_;
    const std::function<void()> notify_;
  };

  // Limits a wait on a condition variable by a deadline, even one that is set after the wait began. Construct and
  // destroy it without holding `mutex`; call at_most() while holding it, before each wait:
  //
  //   const Deadline::Wait wait(&deadline, mutex_, changed_);
  //   MutexLock lock(mutex_);
  //   while (!is_done_ && wait.at_most(end - now()) > Seconds{0}) {
  //     clock_.wait_for(changed_, mutex_, wait.at_most(end - now()));
  //   }
  class Wait {
   public:
    Wait(const Deadline* deadline, Mutex& mutex, CondVar& changed);  // nullptr: no deadline
    Seconds at_most(Seconds time) const;  // `time`, or the time until the deadline if that is shorter

   private:
    const Deadline* const deadline_;
    const Notice notice_;
  };

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Clock& clock_;
  std::atomic<double> at_{kNever};  // on the clock
  mutable Mutex notices_mutex_;     // taken before the mutex of a wait
  mutable std::vector<const Notice*> notices_ GUARDED_BY(notices_mutex_);
};

// For a wait that other work follows before the deadline: returns a function that returns the time at which half of the
// remaining time is used up. The remaining time is measured at the function's first call after the deadline was set;
// before, and for nullptr, it returns nullopt. The returned time is `least` from now or later, for a wait that is short
// unless something hangs; else it is at most `most` after that first call, for a wait that counts for less than what
// follows. Use the function for one wait; deadline and clock must outlive it.
std::function<std::optional<Seconds>()> half_time(const Deadline* deadline, const Clock& clock,
                                                  Seconds least = Seconds{0},
                                                  Seconds most = Seconds{std::numeric_limits<double>::infinity()});

}  // namespace longhaul
