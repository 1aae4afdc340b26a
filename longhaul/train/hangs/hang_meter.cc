#include "longhaul/train/hangs/hang_meter.h"

#include <algorithm>
#include <utility>

namespace longhaul {
namespace {

constexpr size_t kMostTimes = 31;
constexpr int kLooksInLimit = 40;
constexpr Seconds kShortestPause{0.02};
constexpr Seconds kLongestPause{15};

Seconds time_between_looks(const HangOptions& options) {
  Seconds shortest = options.after;
  if (options.kill_after > Seconds{0}) shortest = std::min(shortest, options.kill_after);
  return std::clamp(shortest / kLooksInLimit, kShortestPause, kLongestPause);
}

}  // namespace

HangMeter::HangMeter(const HangOptions& options) : options_(options), between_looks_(time_between_looks(options)) {}

void HangMeter::begin(Seconds now, uint64_t steps) {
  looked_ = now;
  steps_ = steps;
  none_expected_ended_ = NoStepsExpected::state().ended;
}

HangMeter::Finding HangMeter::look(Seconds now, uint64_t steps, const NoStepsExpected::State& none_expected) {
  const Seconds passed = std::clamp(now - std::exchange(looked_, now), Seconds{0}, 2 * between_looks_);
  const uint64_t made = steps - std::exchange(steps_, steps);
  if (none_expected.now || std::exchange(none_expected_ended_, none_expected.ended) != none_expected.ended) {
    is_measured_ = false;
    return go_on();
  }
  without_ += passed;
  if (made > 0) {
    if (std::exchange(is_measured_, true)) note_steps(without_, made);
    return go_on();
  }
  if (without_ < limit()) return Finding::kNothing;
  if (!std::exchange(hangs_, true)) {
    next_report_ = 2 * without_;
    return Finding::kHang;
  }
  if (options_.kill_after > Seconds{0} && without_ >= options_.kill_after) return Finding::kTooLong;
  if (without_ < next_report_) return Finding::kNothing;
  next_report_ = 2 * without_;
  return Finding::kStillHangs;
}

HangMeter::Finding HangMeter::go_on() {
  lasted_ = std::exchange(without_, Seconds{0});
  return std::exchange(hangs_, false) ? Finding::kOver : Finding::kNothing;
}

void HangMeter::note_steps(Seconds took, uint64_t steps) {
  const Seconds each = took / static_cast<double>(steps);
  if (step_times_.size() < kMostTimes) return step_times_.push_back(each);
  step_times_[std::exchange(next_time_, (next_time_ + 1) % kMostTimes)] = each;
}

Seconds HangMeter::median_step() const {
  if (step_times_.empty()) return Seconds{0};
  std::vector<Seconds> times = step_times_;
  const auto middle = times.begin() + static_cast<ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

Seconds HangMeter::limit() const {
  return std::max(options_.after, static_cast<double>(options_.median_steps) * median_step());
}

}  // namespace longhaul
