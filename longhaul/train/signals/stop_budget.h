#pragma once

#include <functional>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

class Deadline;
class Preemption;

// The time that the end of a training run may take: the rest of a preemption's grace period, or unlimited without a
// preemption. A value; the preemption outlives it. Any thread.
class StopBudget {
 public:
  StopBudget(const Preemption* preemption = nullptr) : preemption_(preemption) {}  // nullptr: no preemption

  // Negative: the time is over. nullopt: no limit.
  std::optional<Seconds> left() const;
  bool is_limited() const { return left().has_value(); }

  // For waits, which a preemption then cuts short even if it comes after they began. nullptr: there is none to come.
  const Deadline* deadline() const;

  // For JoinOptions::give_up_at: when half of the remaining time is used up, which leaves the other half for the steps
  // after the join. The remaining time is that at the first call under a preemption; nullopt without one. For one wait;
  // the clock outlives it.
  std::function<std::optional<Seconds>()> half_time(const Clock& clock) const;

 private:
  const Preemption* preemption_;
};

}  // namespace longhaul
