#include "longhaul/base/no_steps_expected.h"

#include <gtest/gtest.h>

#include <limits>

namespace longhaul {
namespace {

TEST(NoStepsExpected, IsKnownWhileItLivesAndCountedAfterwards) {
  const uint64_t before = NoStepsExpected::state().ended;
  EXPECT_FALSE(NoStepsExpected::state().now);
  {
    const NoStepsExpected evaluating;
    const NoStepsExpected saving(Seconds{3600});
    EXPECT_TRUE(NoStepsExpected::state().now);
    EXPECT_EQ(NoStepsExpected::state().until.count(), std::numeric_limits<double>::infinity());
    EXPECT_EQ(NoStepsExpected::state().ended, before);
  }
  EXPECT_FALSE(NoStepsExpected::state().now);
  EXPECT_EQ(NoStepsExpected::state().ended, before + 2);
}

TEST(NoStepsExpected, HasNoEffectAfterItsTime) {
  const uint64_t before = NoStepsExpected::state().ended;
  for (const double time : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const NoStepsExpected saving(Seconds{time});
    EXPECT_FALSE(NoStepsExpected::state().now) << time;
  }
  EXPECT_EQ(NoStepsExpected::state().ended, before);
}

}  // namespace
}  // namespace longhaul
