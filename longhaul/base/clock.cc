#include "longhaul/base/clock.h"

namespace longhaul {
namespace {

class RealClock : public Clock {
 public:
  Seconds now() const override { return std::chrono::steady_clock::now().time_since_epoch(); }
  double wall_time() const override { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    cond.wait_for(mutex, timeout);  // wait: Clock::wait_for() itself
  }
};

}  // namespace

void Clock::wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) {
  wait_for(cond, mutex, deadline - now());  // wait: Clock::wait_until() itself
}

Clock& Clock::real() {
  static auto* const clock = new RealClock;  // threads that were left behind use it while the process ends
  return *clock;
}

}  // namespace longhaul
