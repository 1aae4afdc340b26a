#include "longhaul/events/histogram.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <random>

#include "longhaul/base/error.h"
#include "longhaul/events/bucket_table.h"
#include "longhaul/testing/error_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The definition, followed slowly.
struct Reference {
  template <typename Number>
  explicit Reference(const std::vector<Number>& values) : counts(Histogram::limits().size()) {
    for (Number number : values) {
      const auto value = static_cast<double>(number);
      ++counts[index(value)];
      min = std::min(min, value);
      max = std::max(max, value);
      sum += value;
      magnitude += std::abs(value);
      sum_squares += static_cast<long double>(value) * value;
    }
  }
  static size_t index(double value) {
    const auto& limits = Histogram::limits();
    return std::min<size_t>(std::upper_bound(limits.begin(), limits.end(), value) - limits.begin(), limits.size() - 1);
  }

  std::vector<double> counts;
  double min = DBL_MAX, max = -DBL_MAX;
  long double sum = 0, sum_squares = 0, magnitude = 0;
};

template <typename Number>
proto::HistogramProto histogram_of(const std::vector<Number>& values) {
  Histogram histogram("tag");
  histogram.add(std::span<const Number>(values));
  return histogram.to_proto();
}

// All counts, with the collapsed runs spread out again.
std::vector<double> spread(const proto::HistogramProto& proto) {
  std::vector<double> counts;
  int i = 0;
  for (double limit : Histogram::limits()) {
    const bool reached = limit == proto.bucket_limit(i);
    counts.push_back(reached ? proto.bucket(i) : 0);
    if (reached) ++i;
  }
  EXPECT_EQ(i, proto.bucket_size());
  return counts;
}

template <typename Number>
void expect_exact(const std::vector<Number>& values) {
  const Reference reference(values);
  const auto proto = histogram_of(values);
  EXPECT_TRUE(spread(proto) == reference.counts);
  EXPECT_EQ(proto.min(), reference.min);
  EXPECT_EQ(proto.max(), reference.max);
  EXPECT_EQ(proto.num(), static_cast<double>(values.size()));
  EXPECT_NEAR(proto.sum(), static_cast<double>(reference.sum), static_cast<double>(reference.magnitude * 1e-12));
  EXPECT_NEAR(proto.sum_squares(), static_cast<double>(reference.sum_squares),
              static_cast<double>(reference.sum_squares * 1e-12));
}

// Each limit with its neighbours, in both types; what does not fit in a float is left out.
template <typename Number>
std::vector<Number> limits_and_neighbours() {
  constexpr auto kMax = std::numeric_limits<Number>::max();
  std::vector<Number> values;
  for (double limit : Histogram::limits()) {
    if (std::abs(limit) >= std::min<double>(kMax, DBL_MAX)) continue;  // the sum would overflow
    auto value = static_cast<Number>(limit);
    for (Number towards : {-kMax, kMax}) values.push_back(std::nextafter(value, towards));
    values.push_back(value);
  }
  return values;
}

TEST(Histogram, LimitsGrowByATenthFromBothSidesOfZero) {  // SU-4
  const auto& limits = Histogram::limits();
  ASSERT_EQ(limits.size(), 1551u);
  EXPECT_TRUE(std::is_sorted(limits.begin(), limits.end()));
  EXPECT_EQ(limits[775], 0);
  EXPECT_EQ(limits[776], 1e-12);
  EXPECT_EQ(limits[777], 1e-12 * 1.1);
  EXPECT_LT(limits[1549], 1e20);
  EXPECT_GE(limits[1549] * 1.1, 1e20);
  for (size_t i = 0; i < limits.size(); ++i) EXPECT_EQ(limits[i], -limits[limits.size() - 1 - i]);
}

TEST(Histogram, LimitsAndTheirNeighboursAreCountedExactly) {  // SU-4
  expect_exact(limits_and_neighbours<float>());
  expect_exact(limits_and_neighbours<double>());
}

TEST(Histogram, EveryFloatFallsIntoItsBucket) {
  const auto& table = BucketTable::get();
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += 997) {
    const auto value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(table.bucket_of_slot(table.slot(value)), Reference::index(value)) << value;
  }
}

TEST(Histogram, EveryDoubleFallsIntoItsBucket) {
  const auto& table = BucketTable::get();
  std::mt19937_64 random(1);
  for (int i = 0; i < 2'000'000; ++i) {
    const auto value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    ASSERT_EQ(table.bucket(value), Reference::index(value)) << value;
  }
}

TEST(Histogram, OddFloatsAreCountedExactly) {
  expect_exact<float>({0.0f, -0.0f, FLT_MIN, -FLT_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN, FLT_MAX, -FLT_MAX, 1e20f, -1e20f});
  expect_exact<double>(
      {0.0, -0.0, DBL_MIN, -DBL_MIN, DBL_TRUE_MIN, -DBL_TRUE_MIN, FLT_MAX, 1e39, -1e39, 1e150, -1e150});
}

TEST(Histogram, TheLargestDoubleIsInTheLastBucket) {
  auto proto = histogram_of<double>({DBL_MAX});
  EXPECT_EQ(proto.bucket(proto.bucket_size() - 1), 1);
}

TEST(Histogram, RandomNumbersOfAnyCountAreCountedExactly) {
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0.1f, 3);
  for (size_t count : {1, 3, 4, 5, 7, 8, 9, 1023, 1024, 1025, 100'000}) {
    std::vector<float> floats(count);
    for (float& value : floats) value = normal(random);
    expect_exact(floats);
    expect_exact(std::vector<double>(floats.begin(), floats.end()));
  }
}

TEST(Histogram, IntegersAndHalvesAreCountedAsTheNumbersTheyAre) {
  expect_exact<int8_t>({-128, -1, 0, 1, 127});
  expect_exact<uint8_t>({0, 1, 255});
  expect_exact<int64_t>({INT64_MIN, -1, 0, 1, INT64_MAX});
  expect_exact<uint64_t>({0, UINT64_MAX});
  expect_exact<int32_t>(std::vector<int32_t>(3000, 7));

  auto halves = histogram_of<Half>({Half(0.5f), Half(-2.0f)});
  EXPECT_EQ(halves.min(), -2);
  EXPECT_EQ(halves.max(), 0.5);
  EXPECT_EQ(halves.num(), 2);
  EXPECT_EQ(histogram_of<BFloat16>({BFloat16(3.0f)}).sum_squares(), 9);
}

TEST(Histogram, ARunOfEmptyBucketsIsOneBucketWithItsLastLimit) {  // SU-4
  auto proto = histogram_of<float>({0, 0, 1e-12f * 1.05f});
  EXPECT_THAT(proto.bucket(), ElementsAre(0, 2, 1, 0));
  EXPECT_THAT(proto.bucket_limit(), ElementsAre(0, 1e-12, 1e-12 * 1.1, DBL_MAX));
}

TEST(Histogram, AnEmptyOneHasOneEmptyBucket) {  // SU-4
  auto proto = histogram_of<float>({});
  EXPECT_EQ(proto.min(), DBL_MAX);
  EXPECT_EQ(proto.max(), -DBL_MAX);
  EXPECT_EQ(proto.num(), 0);
  EXPECT_THAT(proto.bucket(), ElementsAre(0));
  EXPECT_THAT(proto.bucket_limit(), ElementsAre(DBL_MAX));
}

template <typename Number>
std::string histogram_refusal(Number bad, size_t at) {
  std::vector<Number> values(2000, Number{1});
  values[at] = bad;
  return refusal_of([&] { histogram_of(values); });
}

TEST(Histogram, NumbersThatAreNotFiniteAreNamed) {  // SU-3
  for (size_t at : {0, 1023, 1024, 1999}) {
    EXPECT_EQ(histogram_refusal<float>(NAN, at), "Nan in summary histogram for: tag");
    EXPECT_EQ(histogram_refusal<float>(-INFINITY, at), "Infinity in summary histogram for: tag");
    EXPECT_EQ(histogram_refusal<double>(NAN, at), "Nan in summary histogram for: tag");
    EXPECT_EQ(histogram_refusal<double>(kInfinity, at), "Infinity in summary histogram for: tag");
  }
}

TEST(Histogram, SquaresMayOverflow) {
  auto proto = histogram_of<double>({1e200, -1e200});
  EXPECT_EQ(proto.num(), 2);
  EXPECT_EQ(proto.sum_squares(), kInfinity);
}

}  // namespace
}  // namespace longhaul
