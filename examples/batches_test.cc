#include "examples/batches.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

namespace longhaul::examples {
namespace {

std::vector<int64_t> epoch_of(const ExampleOrder& order, int64_t count, int64_t epoch) {
  std::vector<int64_t> examples;
  for (int64_t i = 0; i < count; ++i) examples.push_back(order.at(epoch * count + i));
  return examples;
}

// Pictures of two pixels: example i has the pixels i and 255, and the label i % 10.
ImageDataset small_dataset(int64_t count) {
  ImageDataset data{
      .count = count, .rows = 1, .columns = 2, .pixels = std::make_unique<uint8_t[]>(count * 2), .labels = {}};
  for (int64_t i = 0; i < count; ++i) {
    data.pixels[i * 2] = static_cast<uint8_t>(i);
    data.pixels[i * 2 + 1] = 255;
    data.labels.push_back(static_cast<uint8_t>(i % 10));
  }
  return data;
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

TEST(Batches, AreTheOrdersNextExamples) {
  const ImageDataset data = small_dataset(10);
  const Batches batches(data, 5, 4);
  const ExampleOrder order(10, 5);
  float images[8];
  int64_t labels[4];
  batches.fill(2, images, labels);  // positions 8 to 11: over the end of the first epoch
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(labels[i], order.at(8 + i));
    EXPECT_FLOAT_EQ(images[i * 2], static_cast<float>(order.at(8 + i)) / 255.0f);
    EXPECT_FLOAT_EQ(images[i * 2 + 1], 1.0f);
  }
}

TEST(Batches, ARangeIsAsItStands) {
  const ImageDataset data = small_dataset(10);
  float images[4];
  int64_t labels[2];
  fill_range(data, 7, 2, images, labels);
  EXPECT_EQ(labels[0], 7);
  EXPECT_EQ(labels[1], 8);
  EXPECT_FLOAT_EQ(images[2], 8.0f / 255.0f);
}

}  // namespace
}  // namespace longhaul::examples
