#include "longhaul/testing/fake_clock.h"

#include <pthread.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "longhaul/base/above_stdio.h"
#include "longhaul/base/error.h"

namespace longhaul::testing {
namespace {

constexpr std::string_view kHangWatch = "lh-hang";

bool is_hang_watch() {
  char name[16] = {};
  return pthread_getname_np(pthread_self(), name, sizeof name) == 0 && std::string_view(name) == kHangWatch;
}

bool has_hang_watch() {
  const AboveStdio above;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    const AboveStdio above;
    std::ifstream comm(thread.path() / "comm");
    std::string name;
    if (std::getline(comm, name) && name == kHangWatch) return true;
  }
  return false;
}

}  // namespace

void FakeClock::advance(Seconds by) {
  MutexLock lock(mutex_);
  now_ += by;
}

void FakeClock::advance_before_hang_watch(Seconds by, Seconds piece) {
  for (Seconds passed{0}; passed < by; passed += piece) {
    advance(piece);
    const Seconds time = now(), deadline = Clock::real().now() + Seconds{20};
    while (!hang_watch_has_seen(time)) {
      if (Clock::real().now() > deadline) throw DeadlineExceededError("the watch for hangs sees nothing");
      std::this_thread::yield();
    }
  }
}

bool FakeClock::hang_watch_has_seen(Seconds now) const {
  {
    MutexLock lock(mutex_);
    if (hang_watch_waits_ >= now) return true;
  }
  return !has_hang_watch();
}

Seconds FakeClock::now() const {
  MutexLock lock(mutex_);
  return now_;
}

void FakeClock::wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) {
  constexpr Seconds kMoment{0.0005};
  if (is_hang_watch()) {
    MutexLock lock(mutex_);
    hang_watch_waits_ = now_;
  } else if (waits_ == Waits::kPassTime) {
    advance(std::max(timeout, Seconds{0}));
  }
  cond.wait_for(mutex, kMoment);
}

void FakeClock::wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) {
  constexpr Seconds kMostAtOnce{0.5};
  wait_for(cond, mutex, std::min(deadline - now(), kMostAtOnce));
}

}  // namespace longhaul::testing
