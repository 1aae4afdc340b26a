#include "longhaul/resume_check/timeline.h"

#include <gtest/gtest.h>

namespace longhaul {
namespace {

TEST(TimelineTest, KnowsWhereARunWasBetweenItsCheckpoints) {
  Timeline timeline;
  timeline.add(10, Seconds{3});
  timeline.add(30, Seconds{5});
  timeline.end(Seconds{6});
  EXPECT_DOUBLE_EQ(timeline.start().count(), 2);
  EXPECT_DOUBLE_EQ(timeline.at(0).count(), 2);
  EXPECT_DOUBLE_EQ(timeline.at(5).count(), 2.5);
  EXPECT_DOUBLE_EQ(timeline.at(10).count(), 3);
  EXPECT_DOUBLE_EQ(timeline.at(20).count(), 4);
  EXPECT_DOUBLE_EQ(timeline.at(90).count(), 5);
}

TEST(TimelineTest, LeavesOutAStepThatIsSavedAgain) {
  Timeline timeline;
  timeline.add(10, Seconds{3});
  timeline.add(10, Seconds{4});
  timeline.add(5, Seconds{5});
  EXPECT_EQ(timeline.steps(), std::vector<int64_t>{10});
  EXPECT_DOUBLE_EQ(timeline.start().count(), 0);
}

TEST(TimelineTest, IsEmptyWithoutSteps) {
  EXPECT_FALSE(Timeline().has_steps());
  EXPECT_DOUBLE_EQ(Timeline().at(7).count(), 0);
}

}  // namespace
}  // namespace longhaul
