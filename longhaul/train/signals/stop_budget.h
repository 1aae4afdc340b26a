#pragma once

#include <functional>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

class Preemption;

// How much time the end of a training may take: what a preemption leaves, or as much as each step of it wants where
// none ends the training. A value; the preemption outlives it. Any thread.
class StopBudget {
 public:
  StopBudget(const Preemption* preemption = nullptr) : preemption_(preemption) {}  // nullptr: nobody can preempt it

  // Negative: the time is over. nullopt: there is no limit.
  std::optional<Seconds> left() const;
  bool is_limited() const { return left().has_value(); }

  // For JoinOptions::give_up: true once half of the time that was left is used, which leaves the other half to what
  // comes after the threads. That time is what is left when it is first asked under a preemption. For one wait; the
  // clock outlives it.
  std::function<bool()> half_is_used(const Clock& clock) const;

 private:
  const Preemption* preemption_;
};

}  // namespace longhaul
