#include "longhaul/testing/fake_clock.h"

#include <pthread.h>

#include <algorithm>
#include <string_view>

namespace longhaul::testing {
namespace {

bool is_hang_watch() {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::string_view(name) == "lh-hang";
}

}  // namespace

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
  if (waits_ == Waits::kPassTime && !is_hang_watch()) advance(std::max(timeout, Seconds{0}));
  cond.wait_for(mutex, kMoment);
}

void FakeClock::wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) {
  constexpr Seconds kMostAtOnce{0.5};
  wait_for(cond, mutex, std::min(deadline - now(), kMostAtOnce));
}

}  // namespace longhaul::testing
