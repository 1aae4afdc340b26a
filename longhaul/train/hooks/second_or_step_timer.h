#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "longhaul/base/clock.h"

namespace longhaul {

// The interval between two triggers: in time or in steps.
struct TimerInterval {
  std::optional<Seconds> every_secs{};
  std::optional<int64_t> every_steps{};
};

// Decides at which steps a periodic action is due. The first time, it is due immediately.
//
//   if (timer.should_trigger_for_step(step)) {
//     const auto since = timer.update_last_triggered_step(step);
//     ...
//   }
//
// One thread at a time.
class SecondOrStepTimer {
 public:
  struct Elapsed {
    Seconds time;
    int64_t steps;
  };

  // InvalidArgumentError, with a message that names `owner`: not "exactly one of" the two is given, or it is negative.
  // The clock must outlive the timer.
  explicit SecondOrStepTimer(TimerInterval interval, Clock* clock = &Clock::real(),
                             std::string_view owner = "SecondOrStepTimer");

  // True until the first trigger; never true twice for one step.
  bool should_trigger_for_step(int64_t step) const;

  // Records that the action was done at this step. Returns the time and steps since the previous one; nullopt the first
  // time.
  std::optional<Elapsed> update_last_triggered_step(int64_t step);

  std::optional<int64_t> last_triggered_step() const;

  void reset() { last_.reset(); }

  // Only for a timer in seconds: the interval from now on.
  std::optional<Seconds> every_secs() const { return interval_.every_secs; }
  void set_every_secs(Seconds seconds) { interval_.every_secs = seconds; }

 private:
  struct Trigger {
    Seconds time;
    int64_t step;
  };

  TimerInterval interval_;
  const Clock* clock_;
  std::optional<Trigger> last_;
};

}  // namespace longhaul
