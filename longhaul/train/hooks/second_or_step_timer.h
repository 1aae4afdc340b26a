#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "longhaul/base/clock.h"

namespace longhaul {

// How often something is due: after so much time, or after so many steps.
struct TimerInterval {
  std::optional<Seconds> every_secs;
  std::optional<int64_t> every_steps;
};

// Says at which steps something is due that is done every so often, the first time at once.
//
//   if (timer.should_trigger_for_step(step)) {
//     const auto since = timer.update_last_triggered_step(step);
//     ...
//   }
//
// For one thread.
class SecondOrStepTimer {
 public:
  struct Elapsed {
    Seconds time;
    int64_t steps;
  };

  // InvalidArgumentError, with the name of who asks in it: not "exactly one of" the two is there, or it is negative.
  // The clock outlives the timer.
  explicit SecondOrStepTimer(TimerInterval interval, Clock* clock = &Clock::real(),
                             std::string_view owner = "SecondOrStepTimer");

  // True as long as nothing was triggered; never twice for one step.
  bool should_trigger_for_step(int64_t step) const;

  // It was done at this step. Returns what passed since it was done before; nothing the first time.
  std::optional<Elapsed> update_last_triggered_step(int64_t step);

  std::optional<int64_t> last_triggered_step() const;

  void reset() { last_.reset(); }

  // For a timer by seconds: from now on so many.
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
