#include "longhaul/events/bucket_table.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>

namespace longhaul {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> make_limits() {
  std::vector<double> positive;
  for (double limit = 1e-12; limit < 1e20; limit *= 1.1) positive.push_back(limit);
  positive.push_back(DBL_MAX);

  std::vector<double> limits;
  for (auto it = positive.rbegin(); it != positive.rend(); ++it) limits.push_back(-*it);
  limits.push_back(0);
  limits.insert(limits.end(), positive.begin(), positive.end());
  return limits;
}

float round_up(double value) {
  if (value > FLT_MAX) return kInfinity;
  auto rounded = static_cast<float>(value);
  return rounded < value ? std::nextafter(rounded, kInfinity) : rounded;
}

}  // namespace

const BucketTable& BucketTable::get() {
  static const BucketTable table;
  return table;
}

BucketTable::BucketTable() : limits_(make_limits()) {
  for (uint32_t i = 0; i < cells_.size(); ++i) cells_[i] = make_cell(i);
}

BucketTable::Cell BucketTable::make_cell(uint32_t index) const {
  const uint32_t first_bits = index << kCellShift;
  const auto nearest_to_zero = std::bit_cast<float>(first_bits);
  if (!std::isfinite(nearest_to_zero)) return {kInfinity, 0};
  const auto farthest = std::bit_cast<float>(first_bits | ((1u << kCellShift) - 1));
  const float least = std::min(nearest_to_zero, farthest), greatest = std::max(nearest_to_zero, farthest);

  auto above_least = std::upper_bound(limits_.begin(), limits_.end(), least);
  const auto bucket = static_cast<uint32_t>(above_least - limits_.begin());
  const bool has_limit = above_least != limits_.end() && *above_least <= greatest;
  return {has_limit ? round_up(*above_least) : kInfinity, bucket};
}

// The nearest float is in the same bucket or, where a limit was crossed by rounding, in the next one.
uint32_t BucketTable::bucket(double value) const {
  uint32_t found = bucket(static_cast<float>(std::clamp<double>(value, -FLT_MAX, FLT_MAX)));
  const auto last = static_cast<uint32_t>(limits_.size() - 1);
  if (found > 0 && value < limits_[found - 1]) return found - 1;
  return found + (found < last && value >= limits_[found]);
}

}  // namespace longhaul
