#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// Where the time of a training went, from its first start on, over all restarts. Each moment counts once.
struct TimeBreakdown {
  Seconds training{0};      // steps made for the first time
  Seconds redone{0};        // steps made again, because the run that had made them ended before it saved them
  Seconds saving{0};        // what checkpoints held the training up; what they slow it down is in the training
  Seconds restoring{0};     // reading a checkpoint
  Seconds initialising{0};  // the rest of a start, up to its first step
  Seconds stopped{0};       // between two runs, and the end of a run after its last step
  bool operator==(const TimeBreakdown&) const = default;

  Seconds total() const { return running() + stopped; }
  Seconds running() const { return training + redone + saving + restoring + initialising; }
  double goodput() const;  // the part of the total that is `training`, in percent; 100 as long as there is no total
};

// "3 h 12 min in 4 runs: 96.2 % goodput, 1.1 % redone, 0.4 % saving, 0.2 % restoring, 0.1 % initialising, 2.0 %
// stopped". `unsaved`: the part of `training` whose steps no checkpoint has: "70.0 % goodput, 26.2 % in no checkpoint".
// Of less than five seconds, which hold no account, it says so.
std::string describe(const TimeBreakdown& breakdown, int64_t runs, Seconds unsaved = Seconds{0});

}  // namespace longhaul
