#include "longhaul/status/curves.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

TEST(Curves, KeepsEachPointOfAShortCurve) {
  Curves curves;
  curves.note("loss", 2, 1);
  curves.note("loss", 1, 2);
  curves.note("rate", 5, 2);
  EXPECT_THAT(curves.points()["loss"], ElementsAre(CurvePoint{1, 2}, CurvePoint{2, 1}));
  EXPECT_EQ(curves.newest()["rate"], (CurvePoint{2, 5}));
}

TEST(Curves, ALongCurveIsThinnedOutEvenlyAndEndsWithTheNewestPoint) {
  Curves curves;
  constexpr int64_t kSteps = 100'000;
  for (int64_t step = 1; step <= kSteps; ++step) {
    curves.note("loss", static_cast<double>(step), step);
    ASSERT_LE(curves.points()["loss"].size(), Curves::kMostPoints + 1) << "at " << step;
    if (step > 2000) step += 499;
  }
  curves.note("loss", -1, kSteps + 1000);
  const std::vector<CurvePoint> points = curves.points()["loss"];
  EXPECT_EQ(points.front(), (CurvePoint{1, 1}));
  EXPECT_EQ(points.back(), (CurvePoint{kSteps + 1000, -1}));
}

TEST(Curves, EveryPointOfALongCurveIsEquallyFarFromTheNext) {
  Curves curves;
  for (int64_t step = 0; step < 5000; ++step) curves.note("loss", 0, step);
  const std::vector<CurvePoint> points = curves.points()["loss"];
  ASSERT_GT(points.size(), Curves::kMostPoints / 2 - 1);
  const int64_t distance = points[1].step - points[0].step;
  for (size_t i = 1; i + 1 < points.size(); ++i) EXPECT_EQ(points[i].step - points[i - 1].step, distance) << i;
}

TEST(Curves, ARestartReplacesWhatWasMadeAfterItsStep) {
  Curves curves;
  for (int64_t step = 1; step <= 5; ++step) curves.note("loss", 0, step);
  curves.note("loss", 7, 3);
  EXPECT_THAT(curves.points()["loss"], ElementsAre(CurvePoint{1, 0}, CurvePoint{2, 0}, CurvePoint{3, 7}));
  curves.note("loss", 8, 0);
  EXPECT_THAT(curves.points()["loss"], ElementsAre(CurvePoint{0, 8}));
}

TEST(Curves, TagsBeyondTheBoundAreCountedAndNotKept) {
  Curves curves;
  for (size_t i = 0; i < Curves::kMostTags + 7; ++i) curves.note(fmt::format("tag{}", i), 0, 1);
  curves.note(std::string(Curves::kMostTagBytes + 1, 'x'), 0, 1);
  EXPECT_THAT(curves.points(), SizeIs(Curves::kMostTags));
  EXPECT_EQ(curves.refused_tags(), 8);
}

TEST(Curves, ANumberThatIsNoneIsKept) {
  Curves curves;
  curves.note("loss", std::numeric_limits<double>::quiet_NaN(), 1);
  EXPECT_TRUE(std::isnan(curves.newest()["loss"].value));
}

}  // namespace
}  // namespace longhaul
