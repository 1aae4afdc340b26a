#include "longhaul/cluster/exchange/step_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/simulation/simulated_clock.h"
#include "longhaul/cluster/simulation/tasks_fixture.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kStep = 7;

class StepExchangeTest : public ::testing::Test {
 protected:
  // Notes the answer as "BUNDLE" or "BUNDLE over".
  void deliver(int64_t step, int32_t bundle, float value = 1, uint64_t incarnation = 11) {
    exchange_->deliver(
        step, bundle, {kWorker, incarnation}, {"", {Tensor::of<float>({value})}},
        [this, bundle](bool is_over) { answers_.push_back(std::to_string(bundle) + (is_over ? " over" : "")); });
  }
  float receive(int64_t step, int32_t bundle, const WaitLimits& limits = {}) {
    return exchange_->receive({step, bundle, kWorker}, limits).at(0).flat<float>()[0];
  }
  // The code and the text of the ConsequenceError that receive() throws.
  std::string consequence_of_receive(int64_t step, int32_t bundle) {
    try {
      receive(step, bundle);
    } catch (const ConsequenceError& error) {
      return std::string(code_name(error.code())) + ": " + error.what();
    }
    return "";
  }
  void in(Seconds time, std::function<void()> event) { clock_.at(clock_.now() + time, std::move(event)); }
  void make(const ExchangeOptions& options) { exchange_ = std::make_unique<StepExchange>(clock_, options); }

  SimulatedClock clock_;
  std::unique_ptr<StepExchange> exchange_ = std::make_unique<StepExchange>(clock_);
  std::vector<std::string> answers_;
};

TEST_F(StepExchangeTest, WhatIsDeliveredIsReceivedInAnyOrder) {  // RZ-1
  deliver(kStep, 0, 5);
  deliver(kStep, 1, 6);
  EXPECT_EQ(receive(kStep, 1), 6);
  EXPECT_EQ(receive(kStep, 0), 5);
  in(Seconds{1}, [&] { deliver(kStep, 2, 8); });
  EXPECT_EQ(receive(kStep, 2), 8);
  EXPECT_THAT(answers_, ElementsAre("0", "1", "2"));
  exchange_->end(kStep);
  EXPECT_EQ(exchange_->counts().steps, 0u);
  EXPECT_EQ(exchange_->counts().bundles, 0u);
  EXPECT_EQ(exchange_->counts().bytes, 0u);
}

TEST_F(StepExchangeTest, ARepeatedDeliveryCountsOnce) {
  deliver(kStep, 0, 5);
  deliver(kStep, 0, 5);
  EXPECT_EQ(receive(kStep, 0), 5);
  deliver(kStep, 0, 5);
  EXPECT_THAT(answers_, ElementsAre("0", "0", "0"));
  EXPECT_EQ(exchange_->counts().delivered, 1u);
  EXPECT_EQ(exchange_->counts().repeated, 2u);
  EXPECT_EQ(exchange_->counts().bundles, 0u);
  EXPECT_EQ(exchange_->counts().bytes, 0u);
}

TEST_F(StepExchangeTest, ABundleIsReceivedOnce) {
  deliver(kStep, 0);
  receive(kStep, 0);
  EXPECT_THAT(error_of<InternalError>([&] { receive(kStep, 0); }),
              HasSubstr("bundle 0 of step 7 from task " + kWorker));
}

TEST_F(StepExchangeTest, AnotherProcessMayNotDeliverTheSame) {  // unlike RZ-4
  deliver(kStep, 0, 5, 11);
  EXPECT_THAT(error_of<AbortedError>([&] { deliver(kStep, 0, 6, 12); }),
              HasSubstr("expects a different device incarnation: 11 vs. 12"));
  EXPECT_EQ(receive(kStep, 0), 5);
}

TEST_F(StepExchangeTest, AStepThatIsOverDropsWhatComesLate) {
  deliver(kStep, 0);
  exchange_->end(kStep);
  deliver(kStep, 0);
  deliver(kStep, 1);
  EXPECT_THAT(answers_, ElementsAre("0", "0 over", "1 over"));
  EXPECT_EQ(exchange_->counts().dropped, 2u);
  EXPECT_FALSE(exchange_->begin(kStep));
  EXPECT_THAT(consequence_of_receive(kStep, 0), HasSubstr("ABORTED: step 7 is over"));
  exchange_->abort(kStep, std::make_exception_ptr(NotFoundError("late")));
  EXPECT_EQ(exchange_->error_of(kStep), nullptr);
  EXPECT_EQ(exchange_->counts().steps, 0u);
}

TEST_F(StepExchangeTest, AnAbortWakesTheStepAndNoOther) {  // RZ-5
  deliver(8, 0, 9);
  in(Seconds{1}, [&] { exchange_->abort(kStep, std::make_exception_ptr(NotFoundError("no such file"))); });
  EXPECT_EQ(consequence_of_receive(kStep, 0), "NOT_FOUND: no such file");
  EXPECT_EQ(consequence_of_receive(kStep, 1), "NOT_FOUND: no such file");
  deliver(kStep, 0);
  EXPECT_THAT(answers_, ElementsAre("0", "0 over"));
  EXPECT_EQ(receive(8, 0), 9);
}

TEST_F(StepExchangeTest, TheEndOfAStepWakesItsWait) {
  in(Seconds{1}, [&] { exchange_->end(kStep); });
  EXPECT_THAT(consequence_of_receive(kStep, 0), HasSubstr("step 7 is over"));
  EXPECT_EQ(exchange_->counts().steps, 0u);
}

TEST_F(StepExchangeTest, TheFirstErrorThatIsNoConsequenceIsKept) {  // SS-21
  const auto original = std::make_exception_ptr(NotFoundError("the original"));
  exchange_->abort(kStep, std::make_exception_ptr(ConsequenceError(Code::kCancelled, "cancelled")));
  exchange_->abort(kStep, original);
  exchange_->abort(kStep, std::make_exception_ptr(InternalError("a later one")));
  EXPECT_EQ(exchange_->error_of(kStep), original);
}

TEST_F(StepExchangeTest, ADeadlineNamesTheSender) {  // unlike RZ-3
  const Seconds deadline = clock_.now() + Seconds{3};
  EXPECT_THAT(error_of<DeadlineExceededError>([&] { receive(kStep, 4, {.deadline = deadline}); }),
              HasSubstr("bundle 4 of step 7 from task " + kWorker));
  EXPECT_NEAR(clock_.now().count(), deadline.count(), 1e-6);
}

TEST_F(StepExchangeTest, ACancelEndsTheWait) {  // RZ-5
  Cancellation cancellation;
  in(Seconds{1}, [&] { cancellation.cancel("the session is closed"); });
  EXPECT_THROW(receive(kStep, 0, {.cancellation = &cancellation}), CancelledError);
}

TEST_F(StepExchangeTest, AboveMaxBufferedTheAnswerWaitsForRoom) {
  make({.max_buffered = 6});
  deliver(kStep, 0);
  deliver(kStep, 1, 5);
  deliver(kStep, 1, 5);  // a repetition waits as well
  deliver(8, 2);
  EXPECT_THAT(answers_, ElementsAre("0"));
  EXPECT_EQ(exchange_->counts().unanswered, 3u);
  EXPECT_EQ(receive(kStep, 1), 5);
  EXPECT_THAT(answers_, ElementsAre("0", "1", "1"));
  receive(kStep, 0);
  EXPECT_THAT(answers_, ElementsAre("0", "1", "1", "2"));
  EXPECT_EQ(exchange_->counts().unanswered, 0u);
}

// Else the sender, which waits for the answers, would never send what the part waits for.
TEST_F(StepExchangeTest, AStepThatWaitsAlwaysHasRoom) {
  make({.max_buffered = 0});
  deliver(kStep, 0);
  EXPECT_TRUE(answers_.empty());
  in(Seconds{1}, [&] {
    EXPECT_THAT(answers_, ElementsAre("0"));
    deliver(kStep, 1);
    deliver(kStep, 2, 8);
  });
  EXPECT_EQ(receive(kStep, 2), 8);
  EXPECT_THAT(answers_, ElementsAre("0", "1", "2"));
}

TEST_F(StepExchangeTest, AnEndAnswersWhatWaitsForRoom) {
  make({.max_buffered = 0});
  deliver(kStep, 0);
  deliver(8, 1);
  exchange_->end(kStep);
  exchange_->abort(8, std::make_exception_ptr(CancelledError("stop")));
  EXPECT_THAT(answers_, ElementsAre("0 over", "1 over"));
}

TEST_F(StepExchangeTest, AStepThatNobodyBeginsIsOverAfterAWhile) {
  deliver(kStep, 0);
  deliver(8, 0);
  exchange_->begin(8);
  in(Seconds{61}, [] {});
  clock_.run_until([] { return false; }, Seconds{62});
  deliver(9, 0);
  EXPECT_EQ(exchange_->counts().steps, 2u);
  EXPECT_FALSE(exchange_->begin(kStep));
  EXPECT_EQ(receive(8, 0), 1);
}

TEST_F(StepExchangeTest, OnlyTheLastStepsAreRemembered) {
  make({.steps_remembered = 2});
  for (int64_t step = 1; step <= 3; ++step) exchange_->end(step);
  EXPECT_TRUE(exchange_->begin(1));
  EXPECT_FALSE(exchange_->begin(2));
  EXPECT_FALSE(exchange_->begin(3));
}

TEST_F(StepExchangeTest, StopEndsAllSteps) {
  deliver(kStep, 0);
  in(Seconds{1}, [&] { exchange_->stop("the server ends"); });
  EXPECT_THAT(consequence_of_receive(8, 0), HasSubstr("UNAVAILABLE: the task was stopped: the server ends"));
  EXPECT_THROW(deliver(9, 0), UnavailableError);
  EXPECT_THROW(receive(9, 0), UnavailableError);
  EXPECT_EQ(exchange_->counts().bytes, 0u);
}

}  // namespace
}  // namespace longhaul
