#pragma once

#include "longhaul/base/mutex.h"

namespace longhaul {

// Time as a parameter, so that what waits can be tested without waiting (testing/fake_clock.h). Any thread may call it.
class Clock {
 public:
  virtual ~Clock() = default;

  // Monotonic time since an arbitrary origin: for intervals and deadlines.
  virtual Seconds now() const = 0;

  // Seconds since 1970, as an event's wall_time wants it: may jump.
  virtual double wall_time() const = 0;

  // Waits for a notification of `cond`, at most `timeout` of this clock; may return early. `mutex` is held by the
  // caller.
  virtual void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) REQUIRES(mutex) = 0;

  // The machine's clocks. Lives for ever.
  static Clock& real();
};

}  // namespace longhaul
