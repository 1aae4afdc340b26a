#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "tests/soak/damage.h"

namespace longhaul::soak {

// What one process of a training did, and what was done to it.
struct FaultyRun {
  std::string fault;                // the kind
  int status = 0;                   // exit status, or 128 + signal
  std::optional<int64_t> restored;  // the step that it began with; nullopt: it did not come so far
  int64_t reached = 0;              // the last step that it told of
  bool passed_over = false;         // a checkpoint after which two runs had died
  std::string log;
};

struct Training {
  std::string program, directory;
  int64_t steps = 0, width = 0;
};

// Runs the program until it ends, undisturbed.
FaultyRun run_undisturbed(const Training& training);

// Runs it under one fault, chosen at random: killed or stopped for a while at a moment up to `longest`, or with faults
// in its files. It has ended when this returns.
FaultyRun run_under_a_fault(const Training& training, std::chrono::milliseconds longest, Random& random);

}  // namespace longhaul::soak
