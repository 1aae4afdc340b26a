#pragma once

#include <cstdint>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// How the time of a training run was spent since its first start, across all restarts. Each moment counts once.
struct TimeBreakdown {
  Seconds training{0};      // steps made for the first time
  Seconds redone{0};        // steps repeated because the run that made them ended before saving them
  Seconds saving{0};        // stalls by checkpoints; steps that they slow down count as training
  Seconds restoring{0};     // reading a checkpoint
  Seconds initialising{0};  // the rest of a start, up to its first step
  Seconds stopped{0};       // between two runs, and the end of a run after its last step
  bool operator==(const TimeBreakdown&) const = default;

  Seconds total() const { return running() + stopped; }
  Seconds running() const { return training + redone + saving + restoring + initialising; }
  double goodput() const;  // `training` as a percentage of the total; 100 while the total is 0
};

// "3 h 12 min in 4 runs: 96.2 % goodput, 1.1 % redone, 0.4 % saving, 0.2 % restoring, 0.1 % initialising, 2.0 %
// stopped". `unsaved`: the part of `training` whose steps no checkpoint has: "70.0 % goodput, 26.2 % in no checkpoint".
// A total below five seconds is too short for percentages, and the text says so.
std::string describe(const TimeBreakdown& breakdown, int64_t runs, Seconds unsaved = Seconds{0});

}  // namespace longhaul
