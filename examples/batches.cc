#include "examples/batches.h"

#include <algorithm>
#include <bit>

namespace longhaul::examples {
namespace {

constexpr int kRounds = 6;

// The finaliser of splitmix64 (Steele, Lea and Flood 2014): every input bit reaches every output bit.
uint64_t mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

int half_bits_for(uint64_t count) {
  return std::max(1, static_cast<int>(std::bit_width(count - 1) + 1) / 2);
}

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

ExampleOrder::ExampleOrder(int64_t count, uint64_t seed)
    : count_(static_cast<uint64_t>(count)), seed_(mix(seed)), half_bits_(half_bits_for(count_)) {}

// A Feistel network permutes a power of four of numbers; walking on until the number is one of ours permutes those.
int64_t ExampleOrder::at(int64_t position) const {
  const uint64_t epoch = static_cast<uint64_t>(position) / count_;
  const uint64_t key = mix(seed_ ^ epoch);
  uint64_t value = permute(static_cast<uint64_t>(position) % count_, key);
  while (value >= count_) value = permute(value, key);
  return static_cast<int64_t>(value);
}

uint64_t ExampleOrder::permute(uint64_t value, uint64_t key) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  uint64_t left = value >> half_bits_;
  uint64_t right = value & mask;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t next = left ^ (mix(key + (right << 3) + static_cast<uint64_t>(round)) & mask);
    left = right;
    right = next;
  }
  return left << half_bits_ | right;
}

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
