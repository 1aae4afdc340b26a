#pragma once

#include <cstdint>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// When an undisturbed run was where, as far as its checkpoints tell: each has a step, and the time after the start of
// the run at which it appeared. Between two of them the steps are taken to be equally long.
class Timeline {
 public:
  // The steps ascend, and so do the times. Others are left out: a run that saves a step again is not there again.
  void add(int64_t step, Seconds at);
  void end(Seconds at) { total_ = at; }

  bool has_steps() const { return !points_.empty(); }
  const std::vector<int64_t>& steps() const { return steps_; }  // of its checkpoints
  Seconds total() const { return total_; }

  // How long the program took before its first step: estimated from the first and the last checkpoint, 0 from one.
  Seconds start() const;
  // When the run was at that step; for one behind its last checkpoint, when that appeared.
  Seconds at(int64_t step) const;

 private:
  std::vector<int64_t> steps_;
  std::vector<Seconds> points_;  // of each step
  Seconds total_{0};
};

}  // namespace longhaul
