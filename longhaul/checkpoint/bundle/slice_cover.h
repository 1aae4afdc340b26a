#pragma once

#include <cstdint>

#include "longhaul/checkpoint/bundle/slice.h"

namespace longhaul {

// Whether slices of a tensor cover a part of it, each element once, in time that grows with their number: no slice is
// compared with another.
//
// Each coordinate of each dimension is given a random number, and a box the product over the dimensions of the
// difference between its end's and its beginning's, modulo a prime. That is a measure: boxes that cover the part once
// have in sum what the part has. Boxes that do not have the same sum with a probability of 2^-53 at most: by the sign
// that each corner counts with, the difference of the sums is a polynomial in the random numbers that is not zero.
class SliceCover {
 public:
  // `wanted` and all slices have all their lengths, and lie in one tensor.
  explicit SliceCover(const TensorSlice& wanted);

  // False: it has nothing in common with what is wanted.
  bool add(const TensorSlice& slice);

  int64_t found() const { return found_; }  // elements; INT64_MAX: too many to be counted
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
