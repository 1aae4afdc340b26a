#include "longhaul/train/divergence/loss_watch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr size_t kBeforeLosses = 2;  // numbers in a state
constexpr double kMostSteps = 0x1p53;

// Of an even number, the mean of the two in the middle.
double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<long>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  const double below = *std::max_element(values.begin(), middle);
  return below + (*middle - below) / 2;
}

bool is_count(double number) {
  return number >= 0 && number <= kMostSteps && number == std::floor(number);
}

void check(bool is_good, const char* name, double value, const char* want) {
  if (is_good) return;
  throw InvalidArgumentError(fmt::format("LossWatchOptions::{} is {}, want {}", name, value, want));
}

}  // namespace

void check_loss_watch(const LossWatchOptions& options) {
  check(options.window >= 1, "window", options.window, "at least 1 loss");
  check(options.warm_up >= 1 && options.warm_up <= options.window, "warm_up", options.warm_up,
        "at least 1 loss, and at most window");
  check(options.deviations >= 0, "deviations", options.deviations, "a number from 0 on");
  check(options.least_share >= 0, "least_share", options.least_share, "a number from 0 on");
  check(options.least_rise >= 0, "least_rise", options.least_rise, "a number from 0 on");
  check(options.in_a_row >= 1, "in_a_row", options.in_a_row, "at least 1 step");
}

LossWatch::LossWatch(const LossWatchOptions& options) : options_(options) {
  check_loss_watch(options);
}

LossWatch::Verdict LossWatch::look(int64_t step, double loss) {
  const bool is_finite = std::isfinite(loss);
  if (!is_finite || is_too_high(loss)) {
    if (high_++ == 0) first_high_step_ = step;
    return !is_finite || high_ >= options_.in_a_row ? Verdict::kBad : Verdict::kHigh;
  }
  high_ = 0;
  losses_.push_back(loss);
  if (losses_.size() > static_cast<size_t>(options_.window)) losses_.pop_front();
  return Verdict::kGood;
}

// The differences of finite numbers may be infinite: then the rise is not above them.
bool LossWatch::is_too_high(double loss) const {
  if (options_.deviations == 0 || losses_.size() < static_cast<size_t>(options_.warm_up)) return false;
  const double middle = median();
  const double rise = loss - middle;
  if (!(rise > options_.least_rise) || !(rise > options_.least_share * std::abs(middle))) return false;
  std::vector<double> distances;
  distances.reserve(losses_.size());
  for (const double each : losses_) distances.push_back(std::abs(each - middle));
  return rise > options_.deviations * median_of(std::move(distances));
}

double LossWatch::median() const {
  if (losses_.empty()) return std::numeric_limits<double>::quiet_NaN();
  return median_of({losses_.begin(), losses_.end()});
}

std::vector<double> LossWatch::state() const {
  std::vector<double> state{static_cast<double>(high_), high_ > 0 ? static_cast<double>(first_high_step_) : 0};
  state.insert(state.end(), losses_.begin(), losses_.end());
  return state;
}

// A program that is started again with a smaller window goes on with the newest losses.
void LossWatch::set_state(const std::vector<double>& state) {
  losses_.clear();
  high_ = 0;
  const bool is_state =
      state.size() >= kBeforeLosses && is_count(state[0]) && is_count(state[1]) &&
      std::all_of(state.begin() + kBeforeLosses, state.end(), [](double x) { return std::isfinite(x); });
  if (!is_state) return;
  high_ = static_cast<int>(std::min(state[0], static_cast<double>(options_.in_a_row)));
  first_high_step_ = static_cast<int64_t>(state[1]);
  const size_t kept = std::min(state.size() - kBeforeLosses, static_cast<size_t>(options_.window));
  losses_.assign(state.end() - static_cast<long>(kept), state.end());
}

}  // namespace longhaul
