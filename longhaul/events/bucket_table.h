#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace longhaul {

// TensorFlow's histogram buckets, found without searching. The floats are cut into cells by sign, exponent and the
// first four bits of the mantissa. A cell spans less than a sixteenth of its numbers while bucket limits are a tenth
// apart, so it contains at most one limit.
//
// Buckets are looked up as slots, which number them by magnitude: first those of the negative floats, then the others.
// So within a cell, the bits of a float grow with its slot, and one addition finds the slot: a cell's entry is its
// first slot, shifted up, plus a value that makes the sum carry into the next slot from the limit's bits on.
class BucketTable {
 public:
  static const BucketTable& get();

  const std::vector<double>& limits() const { return limits_; }

  // The slot of a number; if it is not finite, any slot.
  uint32_t slot(float value) const {
    const auto bits = std::bit_cast<uint32_t>(value);
    return ((bits & kWithinCell) + cells_[bits >> kCellShift]) >> kSlotShift;
  }
  uint32_t slot(double value) const { return other_numbering(bucket(value)); }

  // How many limits are <= value: the number of its bucket. DBL_MAX counts into the last one.
  uint32_t bucket(double value) const;
  uint32_t bucket_of_slot(uint32_t slot) const { return other_numbering(slot); }

 private:
  static constexpr int kCellShift = 32 - 1 - 8 - 4;
  static constexpr int kSlotShift = kCellShift + 1;
  static constexpr uint32_t kWithinCell = (1u << kCellShift) - 1;
  static constexpr uint32_t kZeroBucket = 776;  // contains zero and the smallest positive numbers

  BucketTable();
  uint32_t make_cell(uint32_t first_bits) const;
  uint32_t search_slot(float value) const;
  static uint32_t other_numbering(uint32_t n) { return n < kZeroBucket ? kZeroBucket - n : n; }

  std::vector<double> limits_;
  std::array<uint32_t, 1u << (32 - kCellShift)> cells_;
};

}  // namespace longhaul
