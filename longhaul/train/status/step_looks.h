#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "longhaul/base/clock.h"

namespace longhaul {

// The speed of a training, from a step that is read now and then. One thread at a time.
class StepLooks {
 public:
  // The step now. `wall_time`: in seconds since 1970.
  void look(Seconds now, double wall_time, int64_t step);
  // The steps that follow are those of another session: what passes until then is no step's time.
  void begin_anew() { looks_.clear(); }

  std::optional<int64_t> step() const { return step_; }
  int64_t steps_made() const { return steps_made_; }   // since the first look; a step that goes back counts for none
  double last_growth() const { return last_growth_; }  // in seconds since 1970; 0: none was seen
  double steps_per_second() const;                     // in the last minute

 private:
  struct Look {
    Seconds time{0};
    int64_t step = 0;
  };

  std::deque<Look> looks_;
  std::optional<int64_t> step_;
  int64_t steps_made_ = 0;
  double last_growth_ = 0;
};

}  // namespace longhaul
