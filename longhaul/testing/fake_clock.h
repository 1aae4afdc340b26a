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
  // The same in pieces, each of which the HangWatch on this clock has seen, if there is one: whatever it has not found
  // by the return, it does not find. DeadlineExceededError: it sees nothing for 20 s of real time.
  void advance_before_hang_watch(Seconds by, Seconds piece = Seconds{1}) EXCLUDES(mutex_);

  Seconds now() const override EXCLUDES(mutex_);
  double wall_time() const override { return 1.6e9 + now().count(); }
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex);
  void wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) override REQUIRES(mutex);

 private:
  const Waits waits_;
  bool hang_watch_has_seen(Seconds now) const EXCLUDES(mutex_);  // or there is none

  mutable Mutex mutex_;
  Seconds now_ GUARDED_BY(mutex_){1000};
  Seconds hang_watch_waits_ GUARDED_BY(mutex_){0};  // when it last began to wait
};

}  // namespace longhaul::testing
