#include "longhaul/console/board/long_curve.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

std::vector<int64_t> steps_of(const std::vector<CurveSample>& samples) {
  std::vector<int64_t> steps;
  for (const CurveSample& sample : samples) steps.push_back(sample.step);
  return steps;
}

std::vector<CurveSample> ascending(int64_t count) {
  std::vector<CurveSample> samples;
  for (int64_t step = 0; step < count; ++step) samples.push_back({step, 0, std::sin(static_cast<double>(step) / 5000)});
  return samples;
}

TEST(LongCurve, AValueOfAnEarlierStepReplacesWhatWasMadeSince) {
  LongCurve curve;
  for (const int64_t step : {0, 1, 2, 3, 2}) curve.add({step, 0, static_cast<double>(step)});
  EXPECT_THAT(steps_of(curve.samples()), ElementsAre(0, 1, 2));
  EXPECT_EQ(curve.added(), 5u);
  curve.begin_again(1);
  EXPECT_THAT(steps_of(curve.samples()), ElementsAre(0));
  EXPECT_FALSE(curve.is_thinned());
}

TEST(LongCurve, ThinnedOutItHasItsPeaksItsGapsItsEndsAndItsOrder) {
  LongCurve curve;
  for (int64_t step = 0; step < 10000; ++step) {
    const double value = step == 1234 ? 50 : step == 2345 ? -50 : step == 3456 ? kNan : 0.25;
    curve.add({step, 0, value}, 1000);
    ASSERT_LE(curve.samples().size(), 1000u);
  }
  EXPECT_TRUE(curve.is_thinned());
  EXPECT_EQ(curve.added(), 10000u);
  const std::vector<int64_t> steps = steps_of(curve.samples());
  EXPECT_THAT(steps, AllOf(Contains(0), Contains(1234), Contains(2345), Contains(3456), Contains(9999)));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
}

TEST(LongCurve, AMillionPointsAreDrawnByAThousandWithTheirPeaks) {
  std::vector<CurveSample> samples = ascending(1'000'000);
  samples[123456].value = 9;
  samples[777777].value = -9;
  samples[500001].value = kNan;
  samples[600001].value = std::numeric_limits<double>::infinity();
  const std::vector<CurveSample> drawn = to_be_drawn(samples, -kAll, kAll, 1000);
  EXPECT_LE(drawn.size(), 1000u);
  EXPECT_GE(drawn.size(), 500u);
  const std::vector<int64_t> steps = steps_of(drawn);
  EXPECT_THAT(steps, AllOf(Contains(0), Contains(123456), Contains(500001), Contains(600001), Contains(777777),
                           Contains(999999)));
  EXPECT_TRUE(std::is_sorted(steps.begin(), steps.end()));
  EXPECT_EQ(std::adjacent_find(steps.begin(), steps.end()), steps.end()) << "one is there twice";
}

TEST(LongCurve, AWindowHasAllItsPointsAndItsNeighboursIfTheyAreFew) {
  const std::vector<CurveSample> samples = ascending(1000);
  EXPECT_THAT(steps_of(to_be_drawn(samples, 100, 103, 100)), ElementsAre(99, 100, 101, 102, 103, 104));
  EXPECT_THAT(steps_of(to_be_drawn(samples, -5, 1, 100)), ElementsAre(0, 1, 2));
  EXPECT_THAT(steps_of(to_be_drawn(samples, 998, kAll, 100)), ElementsAre(997, 998, 999));
  EXPECT_THAT(steps_of(to_be_drawn(samples, 5000, 6000, 100)), ElementsAre(999));
  EXPECT_THAT(steps_of(to_be_drawn(samples, 10, 9, 100)), ElementsAre());
  EXPECT_THAT(steps_of(to_be_drawn({}, 0, 9, 100)), ElementsAre());
  EXPECT_LE(to_be_drawn(samples, 0, 999, 8).size(), 8u);
}

// By TensorBoard's formula: last = last * w + (1 - w) * x, divided by 1 - w^n.
TEST(LongCurve, SmoothingIsTensorBoardsWithoutBias) {
  const std::vector<CurveSample> samples{{0, 0, 4}, {1, 0, 8}, {2, 0, kNan}, {3, 0, 0}};
  const std::vector<CurveSample> smooth = smoothed(samples, 0.75);
  EXPECT_DOUBLE_EQ(smooth[0].value, 4);
  EXPECT_DOUBLE_EQ(smooth[1].value, (0.75 * 0.25 * 4 + 0.25 * 8) / (1 - 0.75 * 0.75));
  EXPECT_TRUE(std::isnan(smooth[2].value));
  EXPECT_DOUBLE_EQ(smooth[3].value, (0.75 * (0.75 * 0.25 * 4 + 0.25 * 8)) / (1 - std::pow(0.75, 3)));
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(smoothed(samples, 0)[i], samples[i]);
}

}  // namespace
}  // namespace longhaul::console
