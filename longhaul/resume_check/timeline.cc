#include "longhaul/resume_check/timeline.h"

#include <algorithm>

namespace longhaul {
namespace {

// The time at `step` on the line through two points.
Seconds between(int64_t step, int64_t step_a, Seconds a, int64_t step_b, Seconds b) {
  return a + (b - a) * (static_cast<double>(step - step_a) / static_cast<double>(step_b - step_a));
}

}  // namespace

void Timeline::add(int64_t step, Seconds at) {
  if (!steps_.empty() && (step <= steps_.back() || at < points_.back())) return;
  steps_.push_back(step);
  points_.push_back(at);
}

Seconds Timeline::start() const {
  if (steps_.size() < 2) return Seconds{0};
  const Seconds at_zero = between(0, steps_.front(), points_.front(), steps_.back(), points_.back());
  return std::max(Seconds{0}, at_zero);
}

Seconds Timeline::at(int64_t step) const {
  if (steps_.empty()) return Seconds{0};
  const auto behind = std::lower_bound(steps_.begin(), steps_.end(), step);
  if (behind == steps_.end()) return points_.back();
  const auto i = static_cast<size_t>(behind - steps_.begin());
  if (steps_[i] == step) return points_[i];
  if (i == 0) return step <= 0 ? start() : between(step, 0, start(), steps_[0], points_[0]);
  return between(step, steps_[i - 1], points_[i - 1], steps_[i], points_[i]);
}

}  // namespace longhaul
