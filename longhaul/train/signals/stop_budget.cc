#include "longhaul/train/signals/stop_budget.h"

#include "longhaul/train/signals/preemption.h"

namespace longhaul {

std::optional<Seconds> StopBudget::left() const {
  return preemption_ != nullptr ? preemption_->time_left() : std::nullopt;
}

const Deadline* StopBudget::deadline() const {
  return preemption_ != nullptr ? &preemption_->deadline() : nullptr;
}

std::function<std::optional<Seconds>()> StopBudget::half_time(const Clock& clock) const {
  return [*this, &clock, since = std::optional<Seconds>()]() mutable -> std::optional<Seconds> {
    const std::optional<Seconds> left = this->left();
    if (!left) return std::nullopt;
    const Seconds now = clock.now();
    if (!since) since = now;
    return *since + (now - *since + *left) / 2;
  };
}

}  // namespace longhaul
