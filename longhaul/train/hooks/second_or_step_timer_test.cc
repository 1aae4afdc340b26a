#include "longhaul/train/hooks/second_or_step_timer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "longhaul/base/error.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

class TimerTest : public ::testing::Test {
 protected:
  testing::FakeClock clock_;
  SecondOrStepTimer every_second_{{.every_secs = Seconds{1}}, &clock_};
  SecondOrStepTimer every_third_step_{{.every_steps = 3}, &clock_};
};

TEST_F(TimerTest, ItWantsSecondsOrSteps) {  // HT-1
  EXPECT_THROW(SecondOrStepTimer(TimerInterval{}), InvalidArgumentError);
  EXPECT_THROW(SecondOrStepTimer({.every_secs = Seconds{2}, .every_steps = 10}), InvalidArgumentError);
}

TEST_F(TimerTest, ANegativeIntervalIsRefusedWithTheNameOfWhoAsks) {
  EXPECT_THROW(SecondOrStepTimer({.every_secs = Seconds{-1}}), InvalidArgumentError);
  try {
    SecondOrStepTimer({.every_steps = -1}, &clock_, "MyHook");
    FAIL();
  } catch (const InvalidArgumentError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("MyHook: the interval is negative: -1"));
  }
}

TEST_F(TimerTest, TheFirstTimeItIsAlwaysDue) {  // HT-2
  EXPECT_TRUE(every_second_.should_trigger_for_step(1));
  EXPECT_TRUE(every_second_.should_trigger_for_step(17));
  EXPECT_TRUE(every_third_step_.should_trigger_for_step(2));
}

TEST_F(TimerTest, BySecondsItIsDueAfterThatTimeButNeverTwiceForOneStep) {  // HT-2
  every_second_.update_last_triggered_step(1);
  EXPECT_FALSE(every_second_.should_trigger_for_step(1));
  EXPECT_FALSE(every_second_.should_trigger_for_step(2));
  clock_.advance(Seconds{1});
  EXPECT_FALSE(every_second_.should_trigger_for_step(1));
  EXPECT_TRUE(every_second_.should_trigger_for_step(2));
}

TEST_F(TimerTest, ByStepsItIsDueAfterSoMany) {  // HT-2
  every_third_step_.update_last_triggered_step(1);
  EXPECT_FALSE(every_third_step_.should_trigger_for_step(1));
  EXPECT_FALSE(every_third_step_.should_trigger_for_step(2));
  EXPECT_FALSE(every_third_step_.should_trigger_for_step(3));
  EXPECT_TRUE(every_third_step_.should_trigger_for_step(4));
}

TEST_F(TimerTest, ANumberOfStepsThatNeverComesIsNeverDue) {
  SecondOrStepTimer never({.every_steps = std::numeric_limits<int64_t>::max()}, &clock_);
  never.update_last_triggered_step(7);
  EXPECT_FALSE(never.should_trigger_for_step(8));
  EXPECT_FALSE(never.should_trigger_for_step(std::numeric_limits<int64_t>::max()));
}

TEST_F(TimerTest, AnUpdateTellsWhatHasPassedSinceTheOneBefore) {  // HT-3
  EXPECT_FALSE(every_second_.last_triggered_step());
  EXPECT_FALSE(every_second_.update_last_triggered_step(1));
  clock_.advance(Seconds{1.5});
  const auto first = every_second_.update_last_triggered_step(5);
  EXPECT_EQ(first->time, Seconds{1.5});
  EXPECT_EQ(first->steps, 4);
  EXPECT_EQ(every_second_.update_last_triggered_step(7)->steps, 2);
  EXPECT_EQ(every_second_.last_triggered_step(), 7);
}

TEST_F(TimerTest, AfterAResetItIsAsNew) {
  every_third_step_.update_last_triggered_step(7);
  every_third_step_.reset();
  EXPECT_TRUE(every_third_step_.should_trigger_for_step(7));
  EXPECT_FALSE(every_third_step_.update_last_triggered_step(7));
}

}  // namespace
}  // namespace longhaul
