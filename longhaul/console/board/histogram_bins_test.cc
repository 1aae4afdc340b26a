#include "longhaul/console/board/histogram_bins.h"

#include <gmock/gmock.h>

#include <limits>
#include <numeric>

#include "longhaul/events/histogram.h"

namespace longhaul::console {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST(HistogramBins, ABucketIsDividedAmongItsBins) {
  proto::HistogramProto histogram;
  histogram.set_min(0);
  histogram.set_max(4);
  for (const double limit : {1.0, 3.0, 5.0}) histogram.add_bucket_limit(limit);
  for (const double count : {10.0, 8.0, 6.0}) histogram.add_bucket(count);
  EXPECT_THAT(counts_in_bins(histogram, 0, 4, 4), ElementsAre(10, 4, 4, 6));
  EXPECT_THAT(counts_in_bins(histogram, 0, 4, 2), ElementsAre(14, 10));
}

TEST(HistogramBins, NothingOfAHistogramIsLost) {
  Histogram made;
  std::vector<float> values;
  for (int i = 0; i < 1000; ++i) values.push_back(static_cast<float>(i) / 100 - 3);
  made.add(std::span<const float>(values));
  const std::vector<double> counts = counts_in_bins(made.to_proto(), -3, 6.99, 50);
  EXPECT_NEAR(std::accumulate(counts.begin(), counts.end(), 0.0), 1000, 1e-6);
}

TEST(HistogramBins, AllAtOnePlaceIsOneBin) {
  Histogram made;
  made.add(std::span<const float>(std::vector<float>(5, 2.0f)));
  const std::vector<double> counts = counts_in_bins(made.to_proto(), 1.5, 2.5, 2);
  EXPECT_DOUBLE_EQ(counts[0] + counts[1], 5);
}

TEST(HistogramBins, WhatIsNoHistogramHasNoCounts) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  proto::HistogramProto histogram;
  histogram.set_min(-kInfinity);
  histogram.set_max(kInfinity);
  for (const double limit : {-kInfinity, kInfinity, std::nan(""), 3.0, 1.0}) histogram.add_bucket_limit(limit);
  for (const double count : {-5.0, kInfinity, std::nan(""), 0.0}) histogram.add_bucket(count);
  EXPECT_THAT(counts_in_bins(histogram, 0, 1, 3), Each(0));
  EXPECT_THAT(counts_in_bins(histogram, 1, 1, 3), Each(0));
  EXPECT_THAT(counts_in_bins(histogram, -std::numeric_limits<double>::max(), std::numeric_limits<double>::max(), 3),
              Each(0));
}

}  // namespace
}  // namespace longhaul::console
