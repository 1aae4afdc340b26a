#include "longhaul/train/signals/stop_budget.h"

#include <gtest/gtest.h>

#include "longhaul/testing/fake_clock.h"
#include "longhaul/train/signals/preemption.h"

namespace longhaul {
namespace {

class StopBudgetTest : public ::testing::Test {
 protected:
  testing::FakeClock clock;
  Preemption preemption{{.clock = &clock}};
};

TEST_F(StopBudgetTest, HasNoLimitUnlessAPreemptionSetsOne) {
  EXPECT_FALSE(StopBudget().is_limited());
  const StopBudget budget(&preemption);
  EXPECT_EQ(budget.left(), std::nullopt);
  preemption.preempt(Seconds{10});
  EXPECT_EQ(budget.left(), Seconds{10});
  clock.advance(Seconds{12});
  EXPECT_EQ(budget.left(), Seconds{-2});
  EXPECT_TRUE(budget.is_limited());
}

TEST_F(StopBudgetTest, ThreadsHaveHalfOfWhatIsLeftWhenTheyAreFirstWaitedFor) {
  const StopBudget budget(&preemption);
  const auto half_time = budget.half_time(clock);
  EXPECT_EQ(half_time(), std::nullopt);
  clock.advance(Seconds{1000});
  EXPECT_EQ(half_time(), std::nullopt) << "nobody presses";
  preemption.preempt(Seconds{10});
  clock.advance(Seconds{2});
  const Seconds first = clock.now();
  EXPECT_EQ(half_time(), first + Seconds{4}) << "8 s are left from here on";
  clock.advance(Seconds{3});
  EXPECT_EQ(half_time(), first + Seconds{4}) << "of what was left at first";
  preemption.preempt(Seconds{1});
  EXPECT_EQ(half_time(), first + Seconds{2}) << "there are only 4 s now";
}

TEST_F(StopBudgetTest, EachWaitHasAHalfOfItsOwn) {
  const StopBudget budget(&preemption);
  preemption.preempt(Seconds{8});
  EXPECT_EQ(budget.half_time(clock)(), clock.now() + Seconds{4});
  clock.advance(Seconds{4});
  EXPECT_EQ(budget.half_time(clock)(), clock.now() + Seconds{2});
}

TEST_F(StopBudgetTest, WhereTheTimeIsOverNobodyIsWaitedFor) {
  preemption.preempt(Seconds{1});
  clock.advance(Seconds{1});
  EXPECT_EQ(StopBudget(&preemption).half_time(clock)(), clock.now());
}

}  // namespace
}  // namespace longhaul
