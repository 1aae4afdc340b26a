#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "longhaul/base/no_steps_expected.h"
#include "longhaul/train/hangs/hang_options.h"

namespace longhaul {

// Decides whether a training hangs. It has no thread and no clock: the caller looks at the number of steps, each time
// between_looks() later, and passes what it sees. Only time in which the caller was awake counts: from one look to the
// next twice between_looks() at most, so that a process that was stopped, or a machine that slept, does not hang.
//
//   trains --no step for limit()--> hangs --a step, or none is expected--> trains
//
// One thread.
class HangMeter {
 public:
  enum class Finding {
    kNothing,
    kHang,        // it hangs now
    kStillHangs,  // and has done for twice as long as when that was last said
    kOver,        // it trains again, after it hung for lasted()
    kTooLong      // it hangs for kill_after
  };

  explicit HangMeter(const HangOptions& options);

  void begin(Seconds now, uint64_t steps);
  Finding look(Seconds now, uint64_t steps, const NoStepsExpected::State& none_expected);

  Seconds between_looks() const { return between_looks_; }
  Seconds without_step() const { return without_; }  // the time that counts, since the last step
  Seconds lasted() const { return lasted_; }         // the hang that is over
  Seconds median_step() const;                       // of the newest ones; 0: not known
  Seconds limit() const;

 private:
  Finding go_on();
  void note_steps(Seconds took, uint64_t steps);

  const HangOptions options_;
  const Seconds between_looks_;
  Seconds looked_{0};
  uint64_t steps_ = 0;
  uint64_t none_expected_ended_ = 0;
  bool is_measured_ = false;  // `without_` began with a step
  bool hangs_ = false;
  Seconds without_{0};
  Seconds lasted_{0};
  Seconds next_report_{0};
  std::vector<Seconds> step_times_;  // a ring
  size_t next_time_ = 0;
};

}  // namespace longhaul
