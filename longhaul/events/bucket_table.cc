#include "longhaul/events/bucket_table.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace longhaul {

namespace {

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

}  // namespace

const BucketTable& BucketTable::get() {
  static const BucketTable table;
  return table;
}

BucketTable::BucketTable() : limits_(make_limits()) {
  for (uint32_t i = 0; i < cells_.size(); ++i) cells_[i] = make_cell(i << kCellShift);
}

uint32_t BucketTable::make_cell(uint32_t first_bits) const {
  auto slot_at = [&](uint32_t within) { return search_slot(std::bit_cast<float>(first_bits | within)); };
  if (!std::isfinite(std::bit_cast<float>(first_bits))) return 0;
  const uint32_t first_slot = slot_at(0);
  if (slot_at(kWithinCell) == first_slot) return first_slot << kSlotShift;

  uint32_t below = 0, limit = kWithinCell;  // the last bits of the first slot, and the first of the next
  while (limit - below > 1) {
    const uint32_t middle = (below + limit) / 2;
    (slot_at(middle) == first_slot ? below : limit) = middle;
  }
  return ((first_slot + 1) << kSlotShift) - limit;
}

uint32_t BucketTable::search_slot(float value) const {
  const auto above = std::upper_bound(limits_.begin(), limits_.end(), value);
  const auto bucket = static_cast<uint32_t>(above - limits_.begin());
  return std::signbit(value) ? kZeroBucket - bucket : bucket;
}

// The nearest float is in the same bucket or, where a limit was crossed by rounding, in the next one.
uint32_t BucketTable::bucket(double value) const {
  const auto nearest = static_cast<float>(std::clamp<double>(value, -FLT_MAX, FLT_MAX));
  const uint32_t found = bucket_of_slot(slot(nearest));
  const auto last = static_cast<uint32_t>(limits_.size() - 1);
  if (value < limits_[found - 1]) return found - 1;
  return found + (found < last && value >= limits_[found]);
}

}  // namespace longhaul
