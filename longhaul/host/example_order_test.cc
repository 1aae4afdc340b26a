#include "longhaul/host/example_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace longhaul {
namespace {

std::vector<int64_t> epoch_of(const ExampleOrder& order, int64_t count, int64_t epoch) {
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < count; ++i) examples.push_back(order.at(epoch * count + i));
  return examples;
}

TEST(ExampleOrder, EachEpochHasEachExampleOnce) {
  for (const int64_t count : {1, 2, 3, 4, 5, 16, 17, 1000, 60'000}) {
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

TEST(ExampleOrder, DependsOnSeedAndEpochAlone) {
  EXPECT_EQ(epoch_of(ExampleOrder(100, 1), 100, 0), epoch_of(ExampleOrder(100, 1), 100, 0));
  EXPECT_NE(epoch_of(ExampleOrder(100, 1), 100, 0), epoch_of(ExampleOrder(100, 2), 100, 0));
  EXPECT_NE(epoch_of(ExampleOrder(100, 1), 100, 0), epoch_of(ExampleOrder(100, 1), 100, 1));
}

// Over many seeds each example comes first about equally often: chi-squared with 99 degrees of freedom, 99.99 %
// quantile.
TEST(ExampleOrder, FavoursNoExample) {
  std::vector<int> first(100, 0);
  for (uint64_t seed = 0; seed < 10'000; ++seed) ++first[static_cast<size_t>(ExampleOrder(100, seed).at(0))];
  double chi_squared = 0;
  for (const int seen : first) chi_squared += (seen - 100.0) * (seen - 100.0) / 100.0;
  EXPECT_LT(chi_squared, 161);
}

TEST(ExampleOrder, NeighboursInTheFilesAreNotNeighboursInTheOrder) {
  const std::vector<int64_t> examples = epoch_of(ExampleOrder(60'000, 3), 60'000, 0);
  int adjacent = 0;
  for (size_t i = 1; i < examples.size(); ++i) adjacent += std::abs(examples[i] - examples[i - 1]) == 1;
  EXPECT_LT(adjacent, 15);  // two are expected of a random order
}

}  // namespace
}  // namespace longhaul
