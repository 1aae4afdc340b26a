#pragma once

#include <atomic>
#include <limits>
#include <optional>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// A point in time that may be set, or brought forward, while others wait for something: a preemption's end. It is never
// put off. Any thread.
class Deadline {
 public:
  explicit Deadline(Clock& clock) : clock_(clock) {}
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  // It is `time` from now, unless it comes sooner already. Notifies the waits. Do not call it with a lock that one of
  // them takes.
  void bring_forward(Seconds time) EXCLUDES(waits_mutex_);

  bool is_set() const { return at_ != kNever; }
  std::optional<Seconds> left() const;  // negative: it is past. nullopt: it is not set

  // A wait on a condition variable that a deadline limits, even one that is set when the wait has begun. Make and
  // destroy it without holding `mutex`, and ask it while holding that, before each wait:
  //
  //   const Deadline::Wait wait(deadline, mutex_, changed_);
  //   MutexLock lock(mutex_);
  //   while (!is_done_ && wait.at_most(end - now()) > Seconds{0}) {
  //     clock_.wait_for(changed_, mutex_, wait.at_most(end - now()));
  //   }
  class Wait {
   public:
    Wait(const Deadline* deadline, Mutex& mutex, CondVar& changed);  // nullptr: there is none
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    Seconds at_most(Seconds time) const;  // this, or what is left until the deadline, if that is less

   private:
    friend class Deadline;
    void wake() const;

    const Deadline* const deadline_;
    Mutex& mutex_;
    CondVar& changed_;
  };

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  Clock& clock_;
  std::atomic<double> at_{kNever};  // on the clock
  mutable Mutex waits_mutex_;       // taken before the mutex of a wait
  mutable std::vector<const Wait*> waits_ GUARDED_BY(waits_mutex_);
};

}  // namespace longhaul
