#pragma once

#include "longhaul/base/mutex.h"

namespace longhaul {

// Time as a parameter, so that code that waits can be tested without waiting (testing/fake_clock.h). Any thread may
// call it.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic time since an arbitrary origin: for intervals and deadlines.
  virtual Seconds now() const = 0;

  // Seconds since 1970, as in an event's wall_time; may jump.
  virtual double wall_time() const = 0;

  // Waits for a notification of `cond`, for at most `timeout` on this clock; may return early. The caller holds
  // `mutex`.
  virtual void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) REQUIRES(mutex) = 0;

  // The same, until `deadline` at the latest. For waits for other threads: a clock of tests that passes time passes
  // little of it in one such wait, as those threads need real time.
  virtual void wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) REQUIRES(mutex);

  // The machine's clocks. Never destroyed.
  static Clock& real();
};

}  // namespace longhaul
