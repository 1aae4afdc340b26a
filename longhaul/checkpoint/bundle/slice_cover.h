#pragma once

#include <cstdint>

#include "longhaul/checkpoint/bundle/slice.h"

namespace longhaul {

// Finds out whether slices of a tensor cover each element of a part of it once. Takes time linear in the number of
// slices: no two slices are compared.
//
// Each coordinate of each dimension gets a random number. A box gets a product, modulo a prime: its factors are, for
// each dimension, the difference between the numbers of the box's end and its beginning. That is a measure: the
// measures of boxes that cover the part once add up to that of the part. Boxes that do not cover it once have the same
// sum with a probability of at most 2^-53, because the difference of the sums is a non-zero polynomial in the random
// numbers (each corner counts with a sign).
class SliceCover {
 public:
  // `wanted` and all slices must have explicit lengths, and lie in one tensor.
  explicit SliceCover(const TensorSlice& wanted);

  // False: it does not intersect `wanted`.
  bool add(const TensorSlice& slice);

  int64_t found() const { return found_; }  // elements; INT64_MAX: too many to count
  bool is_whole() const { return found_ == elements_ && sum_ == wanted_measure_; }
  bool overlaps() const { return found_ > elements_ || (found_ == elements_ && sum_ != wanted_measure_); }

 private:
  uint64_t number_at(size_t dimension, int64_t coordinate) const;
  uint64_t measure(const TensorSlice& box) const;

  const TensorSlice wanted_;
  const uint64_t seed_;
  const int64_t elements_;
  const uint64_t wanted_measure_;
  int64_t found_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace longhaul
