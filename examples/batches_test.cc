#include "examples/batches.h"

#include <gtest/gtest.h>

#include "longhaul/data/data_loader.h"
#include "longhaul/data/example_order.h"

namespace longhaul::examples {
namespace {

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

TEST(ImageExamples, ALoadersBatchesAreThoseOfBatches) {
  const ImageDataset data = small_dataset(10);
  const Batches batches(data, 5, 4);
  DataLoader loader(std::make_shared<ImageExamples>(data), {.batch_size = 4, .seed = 5});
  for (int64_t step = 0; step < 10; ++step) {
    Tensor images(kFloat, {4, 2}), labels(kInt64, {4});
    batches.fill(step, images.mutable_flat<float>().data(), labels.mutable_flat<int64_t>().data());
    const Batch batch = loader.at(step * 4);
    EXPECT_TRUE(identical(batch[0], images));
    EXPECT_TRUE(identical(batch[1], labels));
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
