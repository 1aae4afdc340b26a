#include "longhaul/cluster/wire/master_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

// Jobs that wait until the test lets them go.
class MasterThreadsTest : public ::testing::Test {
 protected:
  ~MasterThreadsTest() override {
    gate_.set_value();
    threads_.request_stop("the test ends");
    EXPECT_TRUE(threads_.stop(Seconds{60}));
  }
  void start_waiting() {
    threads_.start([this, open = open_] {
      ++begun_;
      open.wait();
    });
  }
  bool await_begun(int jobs) {
    const Seconds end = Clock::real().now() + Seconds{60};
    while (begun_.load() < jobs && Clock::real().now() < end) std::this_thread::yield();
    return begun_.load() == jobs;
  }

  const ThreadsEnd threads_end_;
  std::atomic<int> begun_{0};
  std::promise<void> gate_;
  const std::shared_future<void> open_ = gate_.get_future().share();
  MasterThreads threads_{Clock::real(), {.most = 3, .most_queued = 2, .most_idle = 1}};
};

TEST_F(MasterThreadsTest, CallsAboveTheLimitsWaitAndThenAreRefused) {
  for (int i = 0; i < 5; ++i) start_waiting();
  EXPECT_TRUE(await_begun(3));
  EXPECT_EQ(threads_.threads(), 3u);
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { start_waiting(); }),
              HasSubstr("has 5 calls of clients, 3 of them under way"));
}

TEST_F(MasterThreadsTest, ThreadsThatNobodyNeedsEnd) {
  std::promise<void> gate;
  const std::shared_future<void> open = gate.get_future().share();
  for (int i = 0; i < 3; ++i) {
    threads_.start([this, open] {
      ++begun_;
      open.wait();
    });
  }
  EXPECT_TRUE(await_begun(3));
  gate.set_value();
  const Seconds end = Clock::real().now() + Seconds{60};
  while (threads_.threads() > 1 && Clock::real().now() < end) std::this_thread::yield();
  EXPECT_EQ(threads_.threads(), 1u);
  start_waiting();
  EXPECT_TRUE(await_begun(4));
}

TEST_F(MasterThreadsTest, AnExceptionIsLoggedAndTheThreadGoesOn) {
  Mutex mutex;
  std::string log;
  const LogSink before = set_log_sink([&](LogLevel, const std::string& message) {
    MutexLock lock(mutex);
    log += message;
  });
  threads_.start([] { throw InternalError("a bug"); });
  start_waiting();
  EXPECT_TRUE(await_begun(1));
  const Seconds end = Clock::real().now() + Seconds{60};
  const auto is_logged = [&] {
    MutexLock lock(mutex);
    return log.find("a bug") != std::string::npos;
  };
  while (!is_logged() && Clock::real().now() < end) std::this_thread::yield();
  EXPECT_TRUE(is_logged());
  set_log_sink(before);
}

TEST_F(MasterThreadsTest, AStopRefusesWhatComesLaterAndRunsWhatWaits) {
  for (int i = 0; i < 4; ++i) start_waiting();
  EXPECT_TRUE(await_begun(3));
  threads_.request_stop("its task ends");
  EXPECT_THAT(error_of<UnavailableError>([&] { start_waiting(); }), HasSubstr("being stopped: its task ends"));
  EXPECT_FALSE(threads_.stop(Seconds{0}));
}

}  // namespace
}  // namespace longhaul
