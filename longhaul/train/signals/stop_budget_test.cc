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
  const auto half_is_used = budget.half_is_used(clock);
  EXPECT_FALSE(half_is_used());
  clock.advance(Seconds{1000});
  EXPECT_FALSE(half_is_used()) << "nobody presses";
  preemption.preempt(Seconds{10});
  clock.advance(Seconds{2});
  EXPECT_FALSE(half_is_used()) << "8 s are left from here on";
  clock.advance(Seconds{3.9});
  EXPECT_FALSE(half_is_used());
  clock.advance(Seconds{0.2});
  EXPECT_TRUE(half_is_used());
}

TEST_F(StopBudgetTest, EachWaitHasAHalfOfItsOwn) {
  const StopBudget budget(&preemption);
  preemption.preempt(Seconds{8});
  const auto first = budget.half_is_used(clock);
  EXPECT_FALSE(first());
  clock.advance(Seconds{4});
  EXPECT_TRUE(first());
  const auto second = budget.half_is_used(clock);
  EXPECT_FALSE(second());
  clock.advance(Seconds{2});
  EXPECT_TRUE(second());
}

TEST_F(StopBudgetTest, WhereTheTimeIsOverNobodyIsWaitedFor) {
  preemption.preempt(Seconds{1});
  clock.advance(Seconds{1});
  EXPECT_TRUE(StopBudget(&preemption).half_is_used(clock)());
}

}  // namespace
}  // namespace longhaul
