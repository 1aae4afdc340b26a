#include "longhaul/events/histogram.h"

#include <algorithm>
#include <array>
#include <cfloat>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "longhaul/base/error.h"
#include "longhaul/events/bucket_table.h"

namespace longhaul {

namespace {

constexpr size_t kBlock = 1024;  // stays in the first cache between the two passes
constexpr size_t kWays = 4;      // neighbours are counted apart: in one bucket they would wait for each other's stores
constexpr size_t kMaxRun = size_t{1} << 31;  // the counters are 32 bits wide

// A number that is not finite shows in sum_squares.
struct Moments {
  double min = DBL_MAX, max = -DBL_MAX, sum = 0, sum_squares = 0;

  void take(double value) {
    min = std::min(min, value);
    max = std::max(max, value);
    sum += value;
    sum_squares += value * value;
  }
};

Moments moments_of(std::span<const double> block) {
  Moments moments;
  for (double value : block) moments.take(value);
  return moments;
}

// Vectors as the compiler knows them on any machine; left to itself it does not use them for this.
using Floats = float __attribute__((vector_size(16)));
using Doubles = double __attribute__((vector_size(16)));

struct VectorMoments {
  Floats min = Floats{} + FLT_MAX, max = Floats{} - FLT_MAX;
  Doubles sum[2] = {}, sum_squares[2] = {};

  void take(const float* values) {
    Floats four;
    std::memcpy(&four, values, sizeof(four));
    min = four < min ? four : min;
    max = four > max ? four : max;
    const Doubles low = {four[0], four[1]}, high = {four[2], four[3]};
    sum[0] += low;
    sum[1] += high;
    sum_squares[0] += low * low;
    sum_squares[1] += high * high;
  }

  void add_to(Moments& moments) const {
    for (int i = 0; i < 4; ++i) {
      moments.min = std::min<double>(moments.min, min[i]);
      moments.max = std::max<double>(moments.max, max[i]);
      moments.sum += sum[i / 2][i % 2];
      moments.sum_squares += sum_squares[i / 2][i % 2];
    }
  }
};

Moments moments_of(std::span<const float> block) {
  VectorMoments even, odd;
  size_t i = 0;
  for (; i + 8 <= block.size(); i += 8) {
    even.take(&block[i]);
    odd.take(&block[i + 4]);
  }
  Moments moments;
  if (i > 0) {
    even.add_to(moments);
    odd.add_to(moments);
  }
  for (; i < block.size(); ++i) moments.take(block[i]);
  return moments;
}

// Counts by the slots of the BucketTable.
class Counters {
 public:
  template <typename Real>
  void count(std::span<const Real> block) {
    const BucketTable& table = BucketTable::get();
    size_t i = 0;
    for (; i + kWays <= block.size(); i += kWays)
      for (size_t way = 0; way < kWays; ++way) ++counts_[way][table.slot(block[i + way])];
    for (; i < block.size(); ++i) ++counts_[0][table.slot(block[i])];
  }

  void add_to(std::vector<uint64_t>& buckets) const {
    const BucketTable& table = BucketTable::get();
    for (uint32_t slot = 0; slot < buckets.size(); ++slot)
      for (const auto& way : counts_) buckets[table.bucket_of_slot(slot)] += way[slot];
  }

 private:
  static constexpr size_t kSlots = 2048;  // more than there are
  std::array<std::array<uint32_t, kSlots>, kWays> counts_{};
};

}  // namespace

Histogram::Histogram(std::string tag) : tag_(std::move(tag)), counts_(limits().size()) {}

const std::vector<double>& Histogram::limits() {
  return BucketTable::get().limits();
}

template <typename Number, typename Reals>
void Histogram::add_blocks(std::span<const Number> values, const Reals& reals) {
  for (; values.size() > kMaxRun; values = values.subspan(kMaxRun)) add_blocks(values.first(kMaxRun), reals);
  Counters counters;
  for (size_t at = 0; at < values.size(); at += kBlock) {
    const auto block = reals(values.subspan(at, std::min(kBlock, values.size() - at)));
    const Moments moments = moments_of(block);
    if (!std::isfinite(moments.sum_squares)) check_finite(block);
    counters.count(block);
    min_ = std::min(min_, moments.min);
    max_ = std::max(max_, moments.max);
    sum_ += moments.sum;
    sum_squares_ += moments.sum_squares;
  }
  counters.add_to(counts_);
  count_ += static_cast<double>(values.size());
}

void Histogram::add(std::span<const float> values) {
  add_blocks(values, [](std::span<const float> block) { return block; });
}
void Histogram::add(std::span<const double> values) {
  add_blocks(values, [](std::span<const double> block) { return block; });
}

template <typename Number>
void Histogram::add(std::span<const Number> values) {
  using Real = std::conditional_t<std::is_class_v<Number>, float, double>;
  Real block[kBlock];
  add_blocks(values, [&block](std::span<const Number> numbers) {
    for (size_t i = 0; i < numbers.size(); ++i) block[i] = static_cast<Real>(numbers[i]);
    return std::span<const Real>(block, numbers.size());
  });
}

template <typename Real>
void Histogram::check_finite(std::span<const Real> values) const {
  for (Real value : values) {
    if (std::isnan(value)) throw InvalidArgumentError("Nan in summary histogram for: " + tag_);
    if (std::isinf(value)) throw InvalidArgumentError("Infinity in summary histogram for: " + tag_);
  }
}

proto::HistogramProto Histogram::to_proto() const {
  proto::HistogramProto proto;
  proto.set_min(min_);
  proto.set_max(max_);
  proto.set_num(count_);
  proto.set_sum(sum_);
  proto.set_sum_squares(sum_squares_);
  for (size_t i = 0; i < counts_.size(); ++i) {
    const bool run_goes_on = counts_[i] == 0 && i + 1 < counts_.size() && counts_[i + 1] == 0;
    if (run_goes_on) continue;
    proto.add_bucket_limit(limits()[i]);
    proto.add_bucket(static_cast<double>(counts_[i]));
  }
  return proto;
}

template void Histogram::add(std::span<const Half>);
template void Histogram::add(std::span<const BFloat16>);
template void Histogram::add(std::span<const bool>);
template void Histogram::add(std::span<const int8_t>);
template void Histogram::add(std::span<const int16_t>);
template void Histogram::add(std::span<const int32_t>);
template void Histogram::add(std::span<const int64_t>);
template void Histogram::add(std::span<const uint8_t>);
template void Histogram::add(std::span<const uint16_t>);
template void Histogram::add(std::span<const uint32_t>);
template void Histogram::add(std::span<const uint64_t>);

}  // namespace longhaul
