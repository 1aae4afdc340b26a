#include "longhaul/train/hooks/second_or_step_timer.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

TimerInterval checked(const TimerInterval& interval, std::string_view owner) {
  const auto& [seconds, steps] = interval;
  if (seconds.has_value() == steps.has_value()) {
    throw InvalidArgumentError(fmt::format("{}: exactly one of seconds and steps must be given, but {}", owner,
                                           seconds ? "both are" : "neither is"));
  }
  if (seconds.value_or(Seconds{0}) < Seconds{0} || steps.value_or(0) < 0) {
    throw InvalidArgumentError(fmt::format("{}: the interval is negative: {:g}", owner,
                                           seconds ? seconds->count() : static_cast<double>(*steps)));
  }
  return interval;
}

}  // namespace

SecondOrStepTimer::SecondOrStepTimer(TimerInterval interval, Clock* clock, std::string_view owner)
    : interval_(checked(interval, owner)), clock_(clock) {}

bool SecondOrStepTimer::should_trigger_for_step(int64_t step) const {
  if (!last_) return true;
  if (step == last_->step) return false;
  if (interval_.every_steps) return step - last_->step >= *interval_.every_steps;
  return clock_->now() >= last_->time + *interval_.every_secs;
}

std::optional<SecondOrStepTimer::Elapsed> SecondOrStepTimer::update_last_triggered_step(int64_t step) {
  const Trigger before = last_.value_or(Trigger{});
  const bool is_first = !last_;
  last_ = {clock_->now(), step};
  if (is_first) return std::nullopt;
  return Elapsed{last_->time - before.time, step - before.step};
}

std::optional<int64_t> SecondOrStepTimer::last_triggered_step() const {
  if (!last_) return std::nullopt;
  return last_->step;
}

}  // namespace longhaul
