#include "longhaul/cluster/wire/run_once.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/base/error.h"
#include "longhaul/cluster/simulation/simulated_clock.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class RunOnceTest : public ::testing::Test {
 protected:
  int64_t call(uint64_t number, const std::string& client = "client") {
    return once_.call(client, number, {.deadline = clock_.now() + Seconds{5}}, [&](Cancellation*) { return count(); })
        .at(0)
        .item<int64_t>();
  }
  std::vector<Tensor> count() { return {Tensor::scalar(++made_), Tensor()}; }

  SimulatedClock clock_;
  RunOnce once_{clock_, /*most_bytes=*/64};
  int64_t made_ = 0;
};

TEST_F(RunOnceTest, ARepeatedCallGetsTheAnswerOfTheFirst) {
  EXPECT_EQ(call(1), 1);
  EXPECT_EQ(call(1), 1);
  EXPECT_EQ(call(2), 2);
  EXPECT_EQ(call(2), 2);
  EXPECT_EQ(call(1, "another"), 3);
  EXPECT_EQ(made_, 3);
}

TEST_F(RunOnceTest, AClientMayHaveSeveralCallsWhoseNumbersHaveNoOrder) {
  EXPECT_EQ(call(uint64_t{1} << 63), 1);
  EXPECT_EQ(call(7), 2);
  EXPECT_EQ(call(uint64_t{1} << 63), 1);
  once_.call("client", 9, {}, [&](Cancellation*) {
    EXPECT_EQ(call(8), 3);
    return count();
  });
  EXPECT_EQ(call(9), 4);
  EXPECT_EQ(call(8), 3);
  EXPECT_EQ(made_, 4);
}

TEST_F(RunOnceTest, NewerAnswersTakeThePlaceOfOlderOnes) {        // unlike MA-10
  for (uint64_t number = 1; number <= 9; ++number) call(number);  // of 8 bytes each, and 64 are kept
  EXPECT_THAT(error_of<AbortedError>([&] { call(1); }),
              HasSubstr("The same RunStep (Master) request was received twice."));
  EXPECT_EQ(call(2), 2);
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kSucceeded);
  EXPECT_EQ(made_, 9);
}

TEST_F(RunOnceTest, OfTheLastCallsItIsKnownThatTheyWereMade) {
  RunOnce few(clock_, /*most_bytes=*/64, /*most_calls=*/2);
  const auto nothing = [](Cancellation*) { return std::vector<Tensor>{}; };
  few.call("client", 1, {}, [&](Cancellation*) {
    for (uint64_t number = 2; number <= 4; ++number) few.call("client", number, {}, nothing);
    EXPECT_EQ(few.ask("client", 1), RunOnce::Known::kUnderWay);
    EXPECT_EQ(few.ask("client", 2), RunOnce::Known::kNever);
    EXPECT_EQ(few.ask("client", 4), RunOnce::Known::kSucceeded);
    return nothing(nullptr);
  });
  EXPECT_EQ(few.calls(), 2u);
}

TEST_F(RunOnceTest, CallsWithoutANumberAreNoRepetitions) {  // unlike MA-10
  EXPECT_EQ(call(0), 1);
  EXPECT_EQ(call(0), 2);
  EXPECT_EQ(once_.calls(), 0u);
}

TEST_F(RunOnceTest, AnErrorIsAnAnswer) {
  int failed = 0;
  const auto fail = [&] {
    return once_.call("client", 1, {}, [&](Cancellation*) -> std::vector<Tensor> {
      ++failed;
      throw OutOfRangeError("the input has ended");
    });
  };
  EXPECT_THROW(fail(), OutOfRangeError);
  EXPECT_THROW(fail(), OutOfRangeError);
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kFailed);
}

TEST_F(RunOnceTest, ValuesThatAreTooLargeAreNotKept) {
  const auto large = [&] {
    return once_.call("client", 1, {}, [&](Cancellation*) {
      ++made_;
      return std::vector<Tensor>{Tensor(kFloat, {17})};
    });
  };
  EXPECT_EQ(large().size(), 1u);
  EXPECT_THAT(error_of<AbortedError>(large), HasSubstr("was made, but its values are no longer here"));
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(call(2), 2);
  EXPECT_EQ(call(2), 2);
}

TEST_F(RunOnceTest, ItTellsWhatBecameOfACall) {
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kNever);
  once_.call("client", 1, {}, [&](Cancellation*) {
    EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kUnderWay);
    return std::vector<Tensor>{};
  });
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kSucceeded);
  EXPECT_EQ(once_.ask("client", 2), RunOnce::Known::kNever);
  once_.forget("client");
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kNever);
  EXPECT_EQ(once_.calls(), 0u);
}

TEST_F(RunOnceTest, ARepetitionWaitsForTheCallThatIsUnderWayWithinItsLimits) {
  const Seconds began = clock_.now();
  once_.call("client", 1, {}, [&](Cancellation*) {
    EXPECT_THROW(call(1), DeadlineExceededError);
    return count();
  });
  EXPECT_NEAR((clock_.now() - began).count(), 5, 0.01);
  EXPECT_EQ(call(1), 1);
}

// As a session does when its run is cancelled.
std::vector<Tensor> end_of(Cancellation& client, Cancellation* end, StepFate fate) {
  client.cancel("its line has broken");
  EXPECT_TRUE(end->cancelled());
  throw_error(Code::kCancelled, "the client has gone", {fate});
}

TEST_F(RunOnceTest, AStepThatItsClientCancelsIsMadeByWhoeverAsksForItAgain) {
  Cancellation gone;
  EXPECT_THROW(once_.call("client", 1, {.cancellation = &gone},
                          [&](Cancellation* end) { return end_of(gone, end, StepFate::kNotCommitted); }),
               CancelledError);
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kNever);
  EXPECT_EQ(call(1), 1);
  EXPECT_EQ(call(1), 1);
}

TEST_F(RunOnceTest, ACancelledRunThatMayHaveDoneSomethingIsNotMadeAgain) {
  for (const StepFate fate : {StepFate::kNotTold, StepFate::kCommitted, StepFate::kNotKnown}) {
    Cancellation gone;
    const auto number = static_cast<uint64_t>(fate) + 1;
    EXPECT_THROW(once_.call("client", number, {.cancellation = &gone},
                            [&](Cancellation* end) { return end_of(gone, end, fate); }),
                 CancelledError);
    EXPECT_THROW(call(number), CancelledError);
  }
  EXPECT_EQ(made_, 0);
}

TEST_F(RunOnceTest, ARunEndsWhenAllHaveGoneWhoAskForIt) {
  Cancellation first, second;
  once_.call("client", 1, {.cancellation = &first}, [&](Cancellation* end) {
    clock_.at(clock_.now() + Seconds{1}, [&] { first.cancel("its line has broken"); });
    clock_.at(clock_.now() + Seconds{2}, [&, end] {
      EXPECT_FALSE(end->cancelled());
      second.cancel("its line has broken, too");
    });
    const Seconds began = clock_.now();
    EXPECT_THAT(error_of<CancelledError>([&] {
                  once_.call("client", 1, {.cancellation = &second}, [&](Cancellation*) { return count(); });
                }),
                HasSubstr("its line has broken, too"));
    EXPECT_NEAR((clock_.now() - began).count(), 2, 0.01);
    EXPECT_TRUE(end->cancelled());
    return count();
  });
  EXPECT_EQ(call(1), 1);  // it has ended all the same
}

TEST_F(RunOnceTest, WhoeverWaitsForTooLongHasGone) {
  Cancellation first;
  once_.call("client", 1, {.cancellation = &first}, [&](Cancellation* end) {
    first.cancel("its line has broken");
    EXPECT_TRUE(end->cancelled());
    return count();
  });
  Cancellation other;
  once_.call("client", 2, {.cancellation = &other}, [&](Cancellation* end) {
    clock_.at(clock_.now() + Seconds{1}, [&] { other.cancel("its line has broken"); });
    EXPECT_THROW(call(2), DeadlineExceededError);
    EXPECT_TRUE(end->cancelled());
    return count();
  });
}

TEST_F(RunOnceTest, WhatAClientThatHasGoneAsksForIsNotBegun) {
  Cancellation gone;
  gone.cancel("its line has broken");
  EXPECT_THROW(once_.call("client", 1, {.cancellation = &gone}, [&](Cancellation*) { return count(); }),
               CancelledError);
  EXPECT_EQ(made_, 0);
  EXPECT_EQ(once_.ask("client", 1), RunOnce::Known::kNever);
}

TEST_F(RunOnceTest, ACallWithoutANumberEndsWithItsClient) {
  Cancellation gone;
  once_.call("client", 0, {.cancellation = &gone}, [&](Cancellation* end) {
    EXPECT_EQ(end, &gone);
    return count();
  });
}

TEST_F(RunOnceTest, AClientThatIsForgottenMeanwhileIsAnsweredAllTheSame) {
  EXPECT_EQ(once_
                .call("client", 1, {},
                      [&](Cancellation*) {
                        once_.forget("client");
                        return count();
                      })
                .at(0)
                .item<int64_t>(),
            1);
  EXPECT_EQ(once_.calls(), 0u);
}

}  // namespace
}  // namespace longhaul
