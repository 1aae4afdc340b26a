#include "examples/batches.h"

#include <numeric>

namespace longhaul::examples {
namespace {

// The examples of a batch lie far apart: without this, each costs a dozen cache misses one after the other.
void prefetch(const uint8_t* bytes, int64_t count) {
  for (int64_t i = 0; i < count; i += 64) __builtin_prefetch(bytes + i);
}

void copy_example(const ImageDataset& data, int64_t example, float* image, int64_t* label) {
  const int64_t size = data.pixels_per_image();
  const uint8_t* pixels = data.pixels.get() + example * size;
  for (int64_t i = 0; i < size; ++i) image[i] = static_cast<float>(pixels[i]) * (1.0f / 255.0f);
  *label = data.labels[static_cast<size_t>(example)];
}

void copy_examples(const ImageDataset& data, std::span<const int64_t> examples, float* images, int64_t* labels) {
  const int64_t size = data.pixels_per_image();
  for (size_t i = 0; i < examples.size(); ++i) {
    if (i + 1 < examples.size()) prefetch(data.pixels.get() + examples[i + 1] * size, size);
    copy_example(data, examples[i], images + static_cast<int64_t>(i) * size, labels + i);
  }
}

}  // namespace

Batch ImageExamples::get_batch(std::span<const int64_t> indices, const BatchMemory& memory) const {
  const auto count = static_cast<int64_t>(indices.size());
  Tensor images = memory.make(kFloat, {count, data_.pixels_per_image()}), labels = memory.make(kInt64, {count});
  copy_examples(data_, indices, images.mutable_flat<float>().data(), labels.mutable_flat<int64_t>().data());
  return {images, labels};
}

Batches::Batches(const ImageDataset& data, uint64_t seed, int64_t batch_size)
    : data_(data),
      batch_size_(batch_size),
      order_({.num_examples = data.count, .batch_size = batch_size, .seed = static_cast<int64_t>(seed)}) {}

void Batches::fill(int64_t step, float* images, int64_t* labels) const {
  std::vector<int64_t> examples(static_cast<size_t>(batch_size_));
  order_.fill(step * batch_size_, examples);
  copy_examples(data_, examples, images, labels);
}

void fill_range(const ImageDataset& data, int64_t first, int64_t count, float* images, int64_t* labels) {
  std::vector<int64_t> examples(static_cast<size_t>(count));
  std::iota(examples.begin(), examples.end(), first);
  copy_examples(data, examples, images, labels);
}

}  // namespace longhaul::examples
