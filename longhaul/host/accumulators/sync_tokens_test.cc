#include "longhaul/host/accumulators/sync_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <thread>

#include "longhaul/base/log.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class SyncTokensTest : public ::testing::Test {
 protected:
  using Replica = SyncTokens::Replica;

  static Replica replica(const std::string& worker) {
    return {.session = std::make_shared<Cancellation>(), .holder = "sync_rep_local_step", .worker = worker};
  }
  static void lose(const Replica& lost) { lost.session->cancel("its process was killed"); }

  int64_t take(const Replica& replica, int64_t local_step) {
    return tokens_.take(replica, local_step, {.limits = {.cancellation = replica.session.get()}});
  }
  std::future<int64_t> take_in_background(const Replica& replica, int64_t local_step) {
    return std::async(std::launch::async, [this, replica, local_step] { return take(replica, local_step); });
  }
  void wait_until_waiting(size_t takes) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (queue_->waiting() != takes && Clock::real().now() < deadline) std::this_thread::yield();
    ASSERT_EQ(queue_->waiting(), takes);
  }

  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>(
      QueueSpec{.kind = "FIFOQueue", .name = "sync_token_q", .signature = {{kInt64}, {Shape{}}}, .capacity = -1},
      make_fifo_store());
  SyncTokens tokens_{queue_};
  const Replica chief_ = replica("worker0"), other_ = replica("worker1");
};

TEST_F(SyncTokensTest, ALostSessionGivesItsTokenBack) {  // unlike SY-10
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(1, 2);
  EXPECT_EQ(take(chief_, 0), 1);
  EXPECT_EQ(take(other_, 0), 1);
  auto waits = take_in_background(chief_, 1);
  wait_until_waiting(1);
  lose(other_);
  EXPECT_EQ(waits.get(), 1);
  EXPECT_EQ(tokens_.holders(), 1u);
}

TEST_F(SyncTokensTest, ATokenOfAStepThatIsOverDoesNotComeBack) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(1, 2);
  EXPECT_EQ(take(other_, 0), 1);
  tokens_.put(2, 2);
  lose(other_);
  EXPECT_EQ(queue_->size(), 2u);
}

TEST_F(SyncTokensTest, ASessionThatEndsWhileItWaitsTakesNoToken) {
  tokens_.renew(chief_.session.get(), 0, 0);
  auto waits = take_in_background(other_, 0);
  wait_until_waiting(1);
  lose(other_);
  EXPECT_THROW(waits.get(), CancelledError);
  tokens_.put(1, 1);
  EXPECT_EQ(queue_->size(), 1u);
}

TEST_F(SyncTokensTest, ARunThatWasNotCommittedGetsTheSameTokenAgain) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(1, 2);
  EXPECT_EQ(take(other_, 0), 1);
  EXPECT_EQ(take(other_, 0), 1);  // its local step was not set
  EXPECT_EQ(queue_->size(), 1u);
  EXPECT_EQ(take(other_, 1), 1);  // it was
  EXPECT_EQ(queue_->size(), 0u);
}

TEST_F(SyncTokensTest, AChiefThatBeginsAgainMakesTheOldTokensVoid) {  // unlike SY-4
  tokens_.renew(chief_.session.get(), 0, 2);
  tokens_.put(1, 3);
  EXPECT_EQ(queue_->size(), 5u);
  for (int i = 0; i < 3; ++i) {
    const Replica next = replica("worker0");
    tokens_.renew(next.session.get(), 1, 2);
    EXPECT_EQ(queue_->size(), 2u);
  }
  lose(chief_);
  EXPECT_EQ(queue_->size(), 2u);
}

TEST_F(SyncTokensTest, AReplicaOfUndoneStepsGoesOnFromTheNewChiefsAtOnce) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(18, 2);
  EXPECT_EQ(take(other_, 17), 18);
  const Replica next = replica("worker0");
  tokens_.join(next);
  tokens_.renew(next.session.get(), 10, 0);
  EXPECT_EQ(take(other_, 18), 10);  // its gradient of step 18 was dropped
  EXPECT_EQ(queue_->size(), 0u);
  tokens_.put(11, 2);
  EXPECT_EQ(take(other_, 10), 11);
  EXPECT_EQ(take(next, 10), 11);
  EXPECT_EQ(queue_->size(), 0u);
}

TEST_F(SyncTokensTest, ANewChiefServesThoseThatWaitForTheOldOne) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(18, 1);
  EXPECT_EQ(take(other_, 17), 18);
  auto waits = take_in_background(other_, 18);
  wait_until_waiting(1);
  tokens_.renew(replica("worker0").session.get(), 10, 0);
  EXPECT_EQ(waits.get(), 10);
  EXPECT_EQ(queue_->size(), 0u);
}

TEST_F(SyncTokensTest, WhatWasPushedForTheStepOfANewChiefCounts) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(18, 2);
  EXPECT_EQ(take(other_, 17), 18);
  tokens_.renew(replica("worker0").session.get(), 18, 0);  // nothing is undone
  auto waits = take_in_background(other_, 18);
  wait_until_waiting(1);
  tokens_.put(19, 2);
  EXPECT_EQ(waits.get(), 19);
}

TEST_F(SyncTokensTest, TokensThatNobodyTookForAStepAreVoidAfterIt) {
  tokens_.renew(chief_.session.get(), 0, 0);
  for (int64_t step = 1; step < 5; ++step) {
    tokens_.put(step, 2);
    EXPECT_EQ(queue_->size(), 2u);
    EXPECT_EQ(take(chief_, step - 1), step);
  }
}

TEST_F(SyncTokensTest, AClosedQueueIsAnError) {
  queue_->close(/*cancel_pending_enqueues=*/false);
  EXPECT_THAT(error_of<CancelledError>([&] { tokens_.put(1, 1); }), HasSubstr("'sync_token_q' is closed"));
}

TEST_F(SyncTokensTest, TheTimeOfTheRunEndsTheWait) {
  const WaitLimits limits{.deadline = Clock::real().now() + Seconds{0.01}};
  EXPECT_THROW(tokens_.take(other_, 0, {.limits = limits}), DeadlineExceededError);
}

TEST_F(SyncTokensTest, AReplicaWaitsUntilAChiefHasBegun) {
  const SyncTokens::Wait wait{.limits = {.cancellation = other_.session.get()}};
  auto waits = std::async(std::launch::async, [&] { tokens_.await_chief(other_, wait); });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  tokens_.renew(chief_.session.get(), 7, 0);
  waits.get();
  tokens_.await_chief(other_, wait);
}

TEST_F(SyncTokensTest, AReplicaOfAModelThatWasSetBackWaitsForTheNextChief) {
  const SyncTokens::Wait wait{.limits = {.cancellation = other_.session.get()}};
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(18, 2);
  tokens_.join(other_);
  tokens_.follow(other_, 18, wait);  // it was not set back, nor is it if steps were made meanwhile
  tokens_.follow(other_, 19, wait);
  auto waits = std::async(std::launch::async, [&] { tokens_.follow(other_, 10, wait); });
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  tokens_.put(19, 2);  // by the old chief
  EXPECT_EQ(waits.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  tokens_.renew(chief_.session.get(), 10, 0);
  waits.get();
  tokens_.put(11, 2);
  EXPECT_EQ(take(other_, 10), 11) << "its gradient of step 10 has counted: it has no token for another one";
  EXPECT_EQ(queue_->size(), 1u);
}

TEST_F(SyncTokensTest, TheRunsEndEndsItsWaitForAChief) {
  const WaitLimits limits{.deadline = Clock::real().now() + Seconds{0.01}};
  EXPECT_THAT(error_of<DeadlineExceededError>([&] { tokens_.await_chief(other_, {.limits = limits}); }),
              HasSubstr("worker1: no chief has begun. Use a SyncReplicasHook"));
  const SyncTokens::Wait wait{.limits = {.cancellation = other_.session.get()}};
  auto waits =
      std::async(std::launch::async, [&] { return coded_error_of([&] { tokens_.await_chief(other_, wait); }); });
  lose(other_);
  EXPECT_THAT(waits.get(), HasSubstr("its process was killed"));
}

// Waits in vain on a clock that passes time, until there are so many warnings.
class SyncTokensLogTest : public SyncTokensTest {
 protected:
  std::vector<std::string> warnings_of_take(int64_t local_step, size_t count) {
    return warnings_of([&](const SyncTokens::Wait& wait) { tokens_.take(other_, local_step, wait); }, count);
  }
  std::vector<std::string> warnings_of(const std::function<void(const SyncTokens::Wait&)>& waits, size_t count) {
    std::vector<std::string> lines;
    Cancellation enough;
    const LogSink before = set_log_sink([&](LogLevel level, const std::string& line) {
      if (level == LogLevel::kWarning) lines.push_back(line);
      if (lines.size() == count) enough.cancel("the test has seen enough");
    });
    EXPECT_THROW(waits({.limits = {.cancellation = &enough}, .clock = &clock_}), CancelledError);
    set_log_sink(before);
    return lines;
  }
  testing::FakeClock clock_{testing::FakeClock::Waits::kPassTime};
};

TEST_F(SyncTokensLogTest, AWaitWithoutAChiefIsInTheLogAgainAndAgain) {
  const Seconds began = clock_.now();
  const std::vector<std::string> lines = warnings_of_take(0, 2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("worker1 has pushed its gradients for step 0, and waits for a token since 60 s: no "
                                  "chief has begun. Use a SyncReplicasHook"));
  EXPECT_THAT(lines[1], HasSubstr("since 180 s"));
  EXPECT_GE(clock_.now() - began, Seconds{180});
}

TEST_F(SyncTokensLogTest, AWaitForAChiefIsInTheLogAgainAndAgain) {
  const auto lines = warnings_of([&](const SyncTokens::Wait& wait) { tokens_.await_chief(other_, wait); }, /*count=*/2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("worker1 waits for the chief since 60 s"));
  EXPECT_THAT(lines[1], HasSubstr("since 180 s"));
}

TEST_F(SyncTokensLogTest, AWaitOfAModelThatWasSetBackSaysSo) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(18, 2);
  tokens_.join(other_);
  const auto lines = warnings_of([&](const SyncTokens::Wait& wait) { tokens_.follow(other_, 10, wait); }, /*count=*/1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("the model was set back from step 18 to 10, and no chief has begun since"));
}

TEST_F(SyncTokensLogTest, TwoRunsOfOneReplicaAtOnceAreInTheLogOnce) {
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& line) {
    if (level == LogLevel::kWarning) lines.push_back(line);
  });
  tokens_.renew(chief_.session.get(), 0, 0);
  std::vector<std::future<int64_t>> runs;
  for (size_t i = 1; i <= 3; ++i) {
    runs.push_back(take_in_background(other_, 0));
    wait_until_waiting(i);
  }
  tokens_.put(1, 3);
  for (auto& run : runs) EXPECT_EQ(run.get(), 1);
  set_log_sink(before);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("worker1: two runs of this replica wait for a token at the same time"));
}

TEST_F(SyncTokensLogTest, TheLogSaysIfTheChiefMakesNoSteps) {
  tokens_.renew(chief_.session.get(), 7, 0);
  const std::vector<std::string> lines = warnings_of_take(7, 1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("the chief has made no step since it began at step 7. Is its queue runner started"));
}

TEST_F(SyncTokensLogTest, TheLogSaysWhichStepIsNotMade) {
  tokens_.renew(chief_.session.get(), 0, 0);
  tokens_.put(1, 1);
  EXPECT_EQ(take(other_, 0), 1);
  const std::vector<std::string> lines = warnings_of_take(1, 1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("step 1 is the last that was begun, and its tokens are taken"));
}

}  // namespace
}  // namespace longhaul
