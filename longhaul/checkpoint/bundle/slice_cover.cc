#include "longhaul/checkpoint/bundle/slice_cover.h"

#include <algorithm>
#include <random>

namespace longhaul {
namespace {

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;

uint64_t product(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>(static_cast<unsigned __int128>(a) * b % kPrime);
}

uint64_t difference(uint64_t a, uint64_t b) {
  return a >= b ? a - b : a + kPrime - b;
}

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
uint64_t mixed(uint64_t word) {
  word += 0x9e3779b97f4a7c15;
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

uint64_t random_seed() {
  std::random_device random;
  return uint64_t{random()} << 32 | random();
}

// What two boxes have in common; false: nothing.
bool common_box(const TensorSlice& a, const TensorSlice& b, TensorSlice& common) {
  common.extents.resize(a.extents.size());
  for (size_t d = 0; d < a.extents.size(); ++d) {
    const auto &x = a.extents[d], &y = b.extents[d];
    const int64_t begin = std::max(x.start, y.start), end = std::min(x.start + x.length, y.start + y.length);
    if (begin >= end) return false;
    common.extents[d] = {begin, end - begin};
  }
  return true;
}

}  // namespace

SliceCover::SliceCover(const TensorSlice& wanted)
    : wanted_(wanted),
      seed_(random_seed()),
      elements_(shape_of(wanted).num_elements()),
      wanted_measure_(elements_ > 0 ? measure(wanted) : 0) {}

uint64_t SliceCover::number_at(size_t dimension, int64_t coordinate) const {
  return mixed(mixed(seed_ + dimension) ^ static_cast<uint64_t>(coordinate)) % kPrime;
}

uint64_t SliceCover::measure(const TensorSlice& box) const {
  uint64_t result = 1;
  for (size_t d = 0; d < box.extents.size(); ++d) {
    const auto& extent = box.extents[d];
    result = product(result, difference(number_at(d, extent.start + extent.length), number_at(d, extent.start)));
  }
  return result;
}

bool SliceCover::add(const TensorSlice& slice) {
  TensorSlice common;
  if (elements_ <= 0 || !common_box(slice, wanted_, common)) return false;
  if (__builtin_add_overflow(found_, shape_of(common).num_elements(), &found_)) found_ = INT64_MAX;
  sum_ = (sum_ + measure(common)) % kPrime;
  return true;
}

}  // namespace longhaul
