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
  return longhaul::half_time(deadline(), clock);
}

}  // namespace longhaul
