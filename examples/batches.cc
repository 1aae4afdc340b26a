#include "examples/batches.h"

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

}  // namespace

Batches::Batches(const ImageDataset& data, uint64_t seed, int64_t batch_size)
    : data_(data), order_(data.count, seed), batch_size_(batch_size) {}

void Batches::fill(int64_t step, float* images, int64_t* labels) const {
  const int64_t first = step * batch_size_;
  const int64_t size = data_.pixels_per_image();
  int64_t example = order_.at(first);
  for (int64_t i = 0; i < batch_size_; ++i) {
    const int64_t next = order_.at(first + i + 1);
    prefetch(data_.pixels.get() + next * size, size);
    copy_example(data_, example, images + i * size, labels + i);
    example = next;
  }
}

void fill_range(const ImageDataset& data, int64_t first, int64_t count, float* images, int64_t* labels) {
  for (int64_t i = 0; i < count; ++i) {
    copy_example(data, first + i, images + i * data.pixels_per_image(), labels + i);
  }
}

}  // namespace longhaul::examples
