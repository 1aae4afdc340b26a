#include "longhaul/train/status/step_looks.h"

#include <gmock/gmock.h>

namespace longhaul {
namespace {

TEST(StepLooks, MeasuresTheLastMinute) {
  StepLooks looks;
  EXPECT_EQ(looks.steps_per_second(), 0);
  for (int second = 0; second <= 300; ++second) {
    const int64_t step = second < 200 ? second : 200 + 3 * (second - 200);
    looks.look(Seconds{static_cast<double>(second)}, 1000 + second, step);
  }
  EXPECT_NEAR(looks.steps_per_second(), 3, 1e-9);
  EXPECT_EQ(looks.steps_made(), 500);
  EXPECT_EQ(looks.step(), 500);
  EXPECT_EQ(looks.last_growth(), 1300);
}

TEST(StepLooks, LooksThatAreCloseTogetherDoNotPushOthersOut) {
  StepLooks looks;
  for (int i = 0; i <= 100'000; ++i) looks.look(Seconds{i * 1e-3}, 0, 2 * i);
  EXPECT_NEAR(looks.steps_per_second(), 2000, 1);
}

TEST(StepLooks, AStepThatGoesBackIsAnotherBeginning) {
  StepLooks looks;
  looks.look(Seconds{0}, 10, 100);
  looks.look(Seconds{1}, 11, 110);
  looks.look(Seconds{2}, 12, 50);
  EXPECT_EQ(looks.steps_per_second(), 0);
  looks.look(Seconds{4}, 14, 54);
  EXPECT_EQ(looks.steps_per_second(), 2);
  EXPECT_EQ(looks.steps_made(), 14);
}

TEST(StepLooks, AStepThatStandsStillHasNoGrowth) {
  StepLooks looks;
  looks.look(Seconds{0}, 10, 5);
  looks.look(Seconds{9}, 19, 5);
  EXPECT_EQ(looks.last_growth(), 0);
  EXPECT_EQ(looks.steps_made(), 0);
}

TEST(StepLooks, APauseIsNoTimeOfSteps) {
  StepLooks looks;
  looks.look(Seconds{0}, 0, 0);
  looks.look(Seconds{1}, 1, 10);
  looks.begin_anew();
  looks.look(Seconds{50}, 50, 10);
  looks.look(Seconds{51}, 51, 20);
  EXPECT_EQ(looks.steps_per_second(), 10);
}

}  // namespace
}  // namespace longhaul
