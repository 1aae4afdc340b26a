#pragma once

#include <gtest/gtest.h>

#include <thread>

#include "longhaul/base/clock.h"
#include "longhaul/base/thread.h"

namespace longhaul {

// As the last member of a fixture, or before what a test's threads use: at its end it waits until every NamedThread
// that was started meanwhile has ended, those too that nobody joins, because they may use what is destroyed next.
class ThreadsEnd {
 public:
  ThreadsEnd() = default;
  ~ThreadsEnd() {
    const Seconds deadline = Clock::real().now() + Seconds{60};
    while (have_not() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_FALSE(have_not()) << "a thread that was started here has not ended";
  }
  ThreadsEnd(const ThreadsEnd&) = delete;
  ThreadsEnd& operator=(const ThreadsEnd&) = delete;

  bool have_not() const { return NamedThread::running() > before_; }

 private:
  const int before_ = NamedThread::running();
};

}  // namespace longhaul
