#include "longhaul/train/signals/stop_budget.h"

#include "longhaul/train/signals/preemption.h"

namespace longhaul {

std::optional<Seconds> StopBudget::left() const {
  return preemption_ != nullptr ? preemption_->time_left() : std::nullopt;
}

std::function<bool()> StopBudget::half_is_used(const Clock& clock) const {
  return [*this, &clock, since = std::optional<Seconds>()]() mutable {
    const std::optional<Seconds> left = this->left();
    if (!left) return false;
    const Seconds now = clock.now();
    if (!since) since = now;
    return now - *since >= *left;
  };
}

}  // namespace longhaul
