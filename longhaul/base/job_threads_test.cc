#include "longhaul/base/job_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
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
class JobThreadsTest : public ::testing::Test {
 protected:
  ~JobThreadsTest() override {
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
  JobThreads threads_{Clock::real(),
                      {.thread = "lh-job", .owner = "the master", .jobs = "calls of clients"},
                      {.most = 3, .most_queued = 2, .most_idle = 1}};
};

TEST_F(JobThreadsTest, JobsAboveTheLimitsWaitAndThenAreRefused) {
  for (int i = 0; i < 5; ++i) start_waiting();
  EXPECT_TRUE(await_begun(3));
  EXPECT_EQ(threads_.threads(), 3u);
  EXPECT_THAT(error_of<ResourceExhaustedError>([&] { start_waiting(); }),
              HasSubstr("has 5 calls of clients, 3 of them under way"));
}

TEST_F(JobThreadsTest, WithoutAQueueEachJobHasAThreadAtOnce) {
  JobThreads without(Clock::real(), {.thread = "lh-part", .owner = "task 1", .jobs = "parts"}, {.most = 2});
  for (int round = 0; round < 20; ++round) {  // a thread that has just ended a job takes the next one
    std::promise<void> gate;
    const std::shared_future<void> open = gate.get_future().share();
    const int before = begun_.load();
    const auto wait = [this, open] {
      ++begun_;
      open.wait();
    };
    without.start(wait);
    without.start(wait);
    EXPECT_TRUE(await_begun(before + 2));
    EXPECT_EQ(without.busy(), 2u);
    EXPECT_THAT(error_of<ResourceExhaustedError>([&] { without.start(wait); }),
                HasSubstr("task 1 has 2 parts, 2 of them under way"));
    gate.set_value();
    const Seconds end = Clock::real().now() + Seconds{60};
    while (without.busy() > 0 && Clock::real().now() < end) std::this_thread::yield();
    ASSERT_EQ(without.busy(), 0u);
  }
  EXPECT_LE(without.threads(), 2u);
  without.request_stop("the test ends");
  EXPECT_TRUE(without.stop(Seconds{60}));
}

TEST_F(JobThreadsTest, WhatAJobHoldsIsGoneWhenItCountsAsEnded) {
  auto held = std::make_shared<int>(1);
  const std::weak_ptr<int> seen = held;
  threads_.start([held = std::move(held)] {});
  const Seconds end = Clock::real().now() + Seconds{60};
  while (threads_.busy() > 0 && Clock::real().now() < end) std::this_thread::yield();
  EXPECT_EQ(threads_.busy(), 0u);
  EXPECT_TRUE(seen.expired());
}

TEST_F(JobThreadsTest, ThreadsThatNobodyNeedsEnd) {
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

TEST_F(JobThreadsTest, AnExceptionIsLoggedAndTheThreadGoesOn) {
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

TEST_F(JobThreadsTest, AStopRefusesWhatComesLaterAndRunsWhatWaits) {
  for (int i = 0; i < 4; ++i) start_waiting();
  EXPECT_TRUE(await_begun(3));
  threads_.request_stop("its task ends");
  EXPECT_THAT(error_of<UnavailableError>([&] { start_waiting(); }), HasSubstr("being stopped: its task ends"));
  EXPECT_FALSE(threads_.stop(Seconds{0}));
}

}  // namespace
}  // namespace longhaul
