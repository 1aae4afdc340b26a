#pragma once

#include <functional>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

class Deadline;
class Preemption;

// The time that the end of a training run may take: the rest of a preemption's grace period, or no limit without a
// preemption. A StopBudget is a value; the preemption must outlive it. Any thread may call.
class StopBudget {
 public:
  StopBudget(const Preemption* preemption = nullptr) : preemption_(preemption) {}  // nullptr: no preemption

  // The remaining time, negative once it is over; nullopt: no limit.
  std::optional<Seconds> left() const;
  bool is_limited() const { return left().has_value(); }

  // For waits. A preemption cuts them short even if it begins during the wait. nullptr: there can be no preemption.
  const Deadline* deadline() const;

  // For JoinOptions::give_up_at: returns a function that returns the time at which half of the remaining time is used
  // up. The other half is left for what follows the join. The remaining time is measured at the function's first call
  // under a preemption; without one, it returns nullopt. Use the function for one wait; the clock must outlive it.
  std::function<std::optional<Seconds>()> half_time(const Clock& clock) const;

 private:
  const Preemption* preemption_;
};

}  // namespace longhaul
