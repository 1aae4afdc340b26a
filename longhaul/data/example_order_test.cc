#include "longhaul/data/example_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <vector>

namespace longhaul {
namespace {

std::vector<int64_t> epoch_of(const ExampleOrder& order, int64_t count, int64_t epoch) {
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < count; ++i) examples.push_back(order.at(epoch * count + i));
  return examples;
}

TEST(ExampleOrder, EachEpochHasEachExampleOnce) {
  for (const int64_t count : {1, 2, 3, 4, 5, 7, 13, 16, 17, 31, 64, 65, 127, 256, 257, 1000, 4096, 4097, 60'000}) {
    const ExampleOrder order(count, 7);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> examples = epoch_of(order, count, epoch);
      std::sort(examples.begin(), examples.end());
      std::vector<int64_t> all(static_cast<size_t>(count));
      std::iota(all.begin(), all.end(), 0);
      EXPECT_EQ(examples, all) << count;
    }
  }
}

// Of sizes that no test can walk through: distinct places have distinct examples, all of them there.
TEST(ExampleOrder, KnowsNoLimitOfSize) {
  for (const int64_t count : {int64_t{1'000'000}, int64_t{1} << 40, (int64_t{1} << 40) + 1, int64_t{1} << 62}) {
    const ExampleOrder order(count, 11);
    std::set<int64_t> seen;
    for (int64_t i = 0; i < 10'000; ++i) {
      const int64_t example = order.at(i * (count / 10'000));
      EXPECT_TRUE(example >= 0 && example < count) << example;
      seen.insert(example);
    }
    EXPECT_EQ(seen.size(), 10'000u) << count;
  }
}

TEST(ExampleOrder, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(epoch_of(ExampleOrder(100, 1), 100, 0), epoch_of(ExampleOrder(100, 1), 100, 0));
  EXPECT_NE(epoch_of(ExampleOrder(100, 1), 100, 0), epoch_of(ExampleOrder(100, 2), 100, 0));
  EXPECT_NE(epoch_of(ExampleOrder(100, 1), 100, 0), epoch_of(ExampleOrder(100, 1), 100, 1));
}

// A checkpoint's position means an order: another one would be another training, without a word.
TEST(ExampleOrder, IsTheSameInEveryVersion) {
  EXPECT_EQ(epoch_of(ExampleOrder(10, 1), 10, 0), (std::vector<int64_t>{3, 2, 7, 9, 8, 5, 4, 0, 6, 1}));
  EXPECT_EQ(epoch_of(ExampleOrder(10, 1), 10, 1), (std::vector<int64_t>{9, 2, 1, 3, 7, 6, 5, 8, 0, 4}));
  EXPECT_EQ(ExampleOrder(60'000, 7).at(123'456), 20'325);
}

double chi_squared(const std::vector<int>& seen, double expected) {
  double sum = 0;
  for (const int count : seen) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// The following bounds are chi-squared's 99.99 % quantiles.
//
// Over many seeds each example comes first about equally often: 99 degrees of freedom.
TEST(ExampleOrder, FavoursNoExample) {
  std::vector<int> first(100, 0);
  for (uint64_t seed = 0; seed < 10'000; ++seed) ++first[static_cast<size_t>(ExampleOrder(100, seed).at(0))];
  EXPECT_LT(chi_squared(first, 100), 161);
}

// Where an example is in the next epoch does not follow from where it was: 99 degrees of freedom.
TEST(ExampleOrder, EpochsAreIndependent) {
  std::vector<int> pairs(100, 0);
  for (uint64_t seed = 0; seed < 10'000; ++seed) {
    const ExampleOrder order(10, seed);
    ++pairs[static_cast<size_t>(order.at(0) * 10 + order.at(10))];
  }
  EXPECT_LT(chi_squared(pairs, 100), 161);
}

// Also of a handful of examples every order comes up about as often: 1, 5, 23 and 119 degrees of freedom.
TEST(ExampleOrder, FavoursNoOrderOfAFew) {
  const std::map<int64_t, std::pair<size_t, double>> orders_and_bound{
      {2, {2, 15.1}}, {3, {6, 25.7}}, {4, {24, 56.5}}, {5, {120, 186.0}}};
  for (const auto& [count, expected] : orders_and_bound) {
    const auto& [orders, bound] = expected;
    std::map<std::vector<int64_t>, int> seen;
    for (uint64_t seed = 0; seed < orders * 100; ++seed) ++seen[epoch_of(ExampleOrder(count, seed), count, 0)];
    std::vector<int> counts(orders, 0);
    std::transform(seen.begin(), seen.end(), counts.begin(), [](const auto& entry) { return entry.second; });
    EXPECT_LT(chi_squared(counts, 100), bound) << count;
  }
}

TEST(ExampleOrder, NeighboursInTheFilesAreNotNeighboursInTheOrder) {
  const std::vector<int64_t> examples = epoch_of(ExampleOrder(60'000, 3), 60'000, 0);
  int adjacent = 0;
  for (size_t i = 1; i < examples.size(); ++i) adjacent += std::abs(examples[i] - examples[i - 1]) == 1;
  EXPECT_LT(adjacent, 15);  // two are expected of a random order
}

// Cut into 100 stretches, an epoch has of each tenth of the files about as many in each: 900 cells.
TEST(ExampleOrder, EveryPartOfAnEpochIsAMixture) {
  const std::vector<int64_t> examples = epoch_of(ExampleOrder(100'000, 5), 100'000, 0);
  std::vector<int> cells(1000, 0);
  for (size_t i = 0; i < examples.size(); ++i) ++cells[i / 1000 * 10 + static_cast<size_t>(examples[i]) / 10'000];
  EXPECT_LT(chi_squared(cells, 100), 1061);  // 891 degrees of freedom
}

}  // namespace
}  // namespace longhaul
