#pragma once

#include "longhaul/base/clock.h"

namespace longhaul::testing {

// A clock that a test moves. Code that waits on it never sleeps for long: wait_for() may return early, and here returns
// after a moment of real time, so that the caller checks now() again. Any thread may call.
class FakeClock : public Clock {
 public:
  enum class Waits {
    kStandStill,  // only advance() moves time
    kPassTime,    // each wait moves time by its timeout, as if it had lasted that long; wait_until() by at most 0.5 s;
                  // those of a HangWatch, which every training has, do not
  };

  explicit FakeClock(Waits waits = Waits::kStandStill) : waits_(waits) {}

  void advance(Seconds by) EXCLUDES(mutex_);

  Seconds now() const override EXCLUDES(mutex_);
  double wall_time() const override { return 1.6e9 + now().count(); }
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex);
  void wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) override REQUIRES(mutex);

 private:
  const Waits waits_;
  mutable Mutex mutex_;
  Seconds now_ GUARDED_BY(mutex_){1000};
};

}  // namespace longhaul::testing
