#pragma once

#include <cfloat>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "longhaul/proto/summary.pb.h"
#include "longhaul/tensor/dtype.h"

namespace longhaul {

// Counts numbers in TensorFlow's buckets, whose limits grow by a tenth from 1e-12 to 1e20, mirrored below zero, and a
// number belongs to the first bucket whose limit is greater. docs/formats/event_file.md. One thread at a time.
class Histogram {
 public:
  // `tag` is for messages.
  explicit Histogram(std::string tag = "");

  // InvalidArgumentError for the first number that is not finite: "Nan in summary histogram for: <tag>", or "Infinity
  // in ..."; the histogram is unusable after that.
  void add(std::span<const float> values);
  void add(std::span<const double> values);

  // Integers, bools and 16-bit floats.
  template <typename Number>
  void add(std::span<const Number> values);

  // A run of empty buckets becomes one bucket with the run's last limit. An empty histogram has min DBL_MAX, max
  // -DBL_MAX and one empty bucket.
  proto::HistogramProto to_proto() const;

  // The upper limits of the buckets, ascending; the last is DBL_MAX.
  static const std::vector<double>& limits();

 private:
  // `reals` converts a block of values to floats or doubles.
  template <typename Number, typename Reals>
  void add_blocks(std::span<const Number> values, const Reals& reals);
  template <typename Real>
  void check_finite(std::span<const Real> values) const;

  std::string tag_;
  std::vector<uint64_t> counts_;
  double min_ = DBL_MAX, max_ = -DBL_MAX;
  double count_ = 0, sum_ = 0, sum_squares_ = 0;
};

}  // namespace longhaul
