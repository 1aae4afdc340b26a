#pragma once

#include <cstdint>

#include "longhaul/checkpoint/bundle/slice.h"

namespace longhaul {

// Whether slices of a tensor cover a part of it, each element once, in time linear in their number: no two slices are
// compared.
//
// Each coordinate of each dimension gets a random number, and a box gets the product over the dimensions of the
// difference between the numbers of its end and its beginning, modulo a prime. That is a measure: the measures of boxes
// that cover the part once add up to that of the part. Boxes that do not cover it once have the same sum with a
// probability of at most 2^-53: because of the sign with which each corner counts, the difference of the sums is a
// non-zero polynomial in the random numbers.
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
