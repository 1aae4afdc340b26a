#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace longhaul {

// TensorFlow's histogram buckets, found without searching. The floats are cut into cells by sign, exponent and the
// first four bits of the mantissa. A cell spans less than a sixteenth of its numbers while bucket limits are a tenth
// apart, so it holds one limit at most, and a single comparison picks the bucket.
class BucketTable {
 public:
  static const BucketTable& get();

  const std::vector<double>& limits() const { return limits_; }

  // The number of limits that are <= value. For numbers that are not finite any index of a bucket.
  uint32_t bucket(float value) const {
    const Cell& cell = cells_[std::bit_cast<uint32_t>(value) >> kCellShift];
    return cell.bucket + (value >= cell.limit);
  }
  uint32_t bucket(double value) const;

 private:
  static constexpr int kCellShift = 32 - 1 - 8 - 4;
  struct Cell {
    float limit;  // the one limit within the cell, rounded up to a float; infinity if there is none
    uint32_t bucket;
  };

  BucketTable();
  Cell make_cell(uint32_t index) const;

  std::vector<double> limits_;
  std::array<Cell, 1u << (32 - kCellShift)> cells_;
};

}  // namespace longhaul
