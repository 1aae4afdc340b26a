#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul::soak {

// What a soak has done.
struct Counts {
  std::map<std::string, int> faults;
  int restarts = 0, trainings = 0, damaged_checkpoints = 0, skipped = 0, failed_runs = 0;
  int64_t steps_redone = 0;

  void print_progress() const;
  void print_table(Seconds lasted, uint64_t seed) const;
};

}  // namespace longhaul::soak
