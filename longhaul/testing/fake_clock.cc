#include "longhaul/testing/fake_clock.h"

#include <algorithm>

namespace longhaul::testing {

void FakeClock::advance(Seconds by) {
  MutexLock lock(mutex_);
  now_ += by;
}

Seconds FakeClock::now() const {
  MutexLock lock(mutex_);
  return now_;
}

void FakeClock::wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) {
  constexpr Seconds kMoment{0.0005};
  if (waits_ == Waits::kPassTime) advance(std::max(timeout, Seconds{0}));
  cond.wait_for(mutex, kMoment);
}

void FakeClock::wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) {
  constexpr Seconds kMostAtOnce{0.5};
  wait_for(cond, mutex, std::min(deadline - now(), kMostAtOnce));
}

}  // namespace longhaul::testing
