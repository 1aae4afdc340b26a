#include "longhaul/events/histogram.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <type_traits>

#include "longhaul/base/error.h"
#include "longhaul/events/bucket_table.h"

namespace longhaul {

namespace {

constexpr size_t kBlock = 1024;  // stays in the first cache between the two passes
constexpr size_t kWays = 4;      // neighbours are counted apart: in one bucket they would wait for each other's stores
constexpr size_t kLanes = 8;
constexpr size_t kMaxRun = size_t{1} << 31;  // the counters are 32 bits wide

struct Moments {
  double min = DBL_MAX, max = -DBL_MAX, sum = 0, sum_squares = 0;
};

// Sums in lanes, so that the compiler may use vectors. A number that is not finite shows in sum_squares.
template <typename Number>
Moments moments_of(std::span<const Number> block) {
  Number min[kLanes], max[kLanes];
  double sum[kLanes] = {}, squares[kLanes] = {};
  std::fill_n(min, kLanes, std::numeric_limits<Number>::max());
  std::fill_n(max, kLanes, std::numeric_limits<Number>::lowest());
  size_t i = 0;
  auto take = [&](size_t lane, Number value) {
    min[lane] = value < min[lane] ? value : min[lane];
    max[lane] = value > max[lane] ? value : max[lane];
    sum[lane] += value;
    squares[lane] += static_cast<double>(value) * value;
  };
  for (; i + kLanes <= block.size(); i += kLanes)
    for (size_t lane = 0; lane < kLanes; ++lane) take(lane, block[i + lane]);
  for (; i < block.size(); ++i) take(0, block[i]);

  Moments all;
  for (size_t lane = 0; lane < kLanes; ++lane) {
    all.min = std::min<double>(all.min, min[lane]);
    all.max = std::max<double>(all.max, max[lane]);
    all.sum += sum[lane];
    all.sum_squares += squares[lane];
  }
  return all;
}

class Counters {
 public:
  explicit Counters(size_t buckets) : stride_(buckets + 1), counts_(kWays * stride_) {}

  template <typename Number>
  void count(std::span<const Number> block) {
    const BucketTable& table = BucketTable::get();
    uint32_t* way[kWays];
    for (size_t w = 0; w < kWays; ++w) way[w] = &counts_[w * stride_];
    size_t i = 0;
    for (; i + kWays <= block.size(); i += kWays)
      for (size_t w = 0; w < kWays; ++w) ++way[w][table.bucket(block[i + w])];
    for (; i < block.size(); ++i) ++way[0][table.bucket(block[i])];
  }

  void add_to(std::vector<uint64_t>& totals) const {
    for (size_t w = 0; w < kWays; ++w)
      for (size_t b = 0; b < totals.size(); ++b) totals[b] += counts_[w * stride_ + b];
  }

 private:
  const size_t stride_;
  std::vector<uint32_t> counts_;
};

}  // namespace

Histogram::Histogram(std::string tag) : tag_(std::move(tag)), counts_(limits().size()) {}

const std::vector<double>& Histogram::limits() {
  return BucketTable::get().limits();
}

void Histogram::add(std::span<const float> values) {
  add_real(values);
}
void Histogram::add(std::span<const double> values) {
  add_real(values);
}

template <typename Real>
void Histogram::add_real(std::span<const Real> values) {
  for (; values.size() > kMaxRun; values = values.subspan(kMaxRun)) add_real(values.first(kMaxRun));
  Counters counters(counts_.size());
  for (size_t at = 0; at < values.size(); at += kBlock) {
    auto block = values.subspan(at, std::min(kBlock, values.size() - at));
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

template <typename Number>
void Histogram::add(std::span<const Number> values) {
  using Real = std::conditional_t<std::is_class_v<Number>, float, double>;
  Real block[kBlock];
  for (size_t at = 0; at < values.size(); at += kBlock) {
    const size_t count = std::min(kBlock, values.size() - at);
    for (size_t i = 0; i < count; ++i) block[i] = static_cast<Real>(values[at + i]);
    add_real(std::span<const Real>(block, count));
  }
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
