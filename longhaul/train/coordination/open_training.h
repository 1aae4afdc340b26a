#pragma once

#include <sys/types.h>

#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// A training run that is under way, from its first session until its end. If the process calls exit() before the end,
// the log says which steps are lost. Any thread may call.
class OpenTraining {
 public:
  explicit OpenTraining(const Coordinator& coord);  // by which it is stopped
  ~OpenTraining();
  OpenTraining(const OpenTraining&) = delete;
  OpenTraining& operator=(const OpenTraining&) = delete;

  // Whether training runs are under way in this process, but `coord` stops none of them.
  static bool is_only_elsewhere(const Coordinator& coord);

 private:
  friend struct OpenTrainings;

  const Coordinator coord_;
  const pid_t process_;  // a forked child has none of its parent's training runs
};

}  // namespace longhaul
