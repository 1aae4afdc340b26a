#pragma once

#include "longhaul/base/mutex.h"

namespace longhaul {

// Time as a parameter, so that tests of code that waits need not wait (testing/fake_clock.h). Any thread may call.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic time since an arbitrary origin: for intervals and deadlines.
  virtual Seconds now() const = 0;

  // Seconds since 1970, as in an event's wall_time; may jump.
  virtual double wall_time() const = 0;

  // Waits for a notification of `cond`, for at most `timeout` on this clock. May return early. The caller must hold
  // `mutex`.
  virtual void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) REQUIRES(mutex) = 0;

  // The same, until `deadline` at the latest. Use it to wait for other threads: a test clock that advances by itself
  // advances only a little during one such wait, because those threads need real time.
  virtual void wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) REQUIRES(mutex);

  // The machine's clocks. Never destroyed.
  static Clock& real();
};

}  // namespace longhaul
