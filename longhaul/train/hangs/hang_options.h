#pragma once

#include <cstdint>

#include "longhaul/base/mutex.h"

namespace longhaul {

// When a training counts as hanging, and what follows from that (train/hangs/hang_watch.h).
struct HangOptions {
  // No step for so long, and for as long as `median_steps` steps of this training, is a hang: the log and the events
  // get the stack of every thread. 0: nothing is watched.
  Seconds after{600};
  int64_t median_steps = 20;

  // A hang that has lasted so long, from its last step on, ends the process with the status kHungStatus, so that it is
  // started again; the checkpoints are left as they are. 0: it is only reported.
  Seconds kill_after{0};
  bool take_core = false;  // it is ended by SIGABRT instead, which leaves a core where the system is set up for it
};

// The exit status of a process that a hang has ended (HangOptions::kill_after).
inline constexpr int kHungStatus = 79;

// InvalidArgumentError: a time is negative or not a number; median_steps is negative. `option`: what the program calls
// them, such as "services.hang".
void check_hang(const HangOptions& options, const char* option);

}  // namespace longhaul
