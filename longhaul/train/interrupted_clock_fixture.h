#pragma once

#include <functional>
#include <thread>
#include <utility>

#include "longhaul/testing/fake_clock.h"

namespace longhaul {

// A clock for a wait that is to be ended by a notification: the first wait brings `event` about, on another thread.
// Time stands still, but for a wait that nobody notifies: after so much real time that the test has failed, it is over.
// For one thread that waits.
class InterruptedClock : public testing::FakeClock {
 public:
  ~InterruptedClock() override { join(); }
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    constexpr Seconds kInVain{20};
    if (event) thread_ = std::thread(std::exchange(event, nullptr));
    const Seconds start = Clock::real().now();
    cond.wait_for(mutex, kInVain);
    if (Clock::real().now() - start >= kInVain) advance(timeout);
  }
  void wait_until(CondVar& cond, Mutex& mutex, Seconds deadline) override REQUIRES(mutex) {
    wait_for(cond, mutex, deadline - now());
  }

  // Call it before what the event uses is destroyed.
  void join() {
    if (thread_.joinable()) thread_.join();
  }

  std::function<void()> event;

 private:
  std::thread thread_;
};

}  // namespace longhaul
