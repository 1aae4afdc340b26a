#pragma once

#include <sys/types.h>

#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// A training that is under way, from its first session until its end. If the process calls exit() in the middle of it,
// the log says what that costs. Any thread may call.
class OpenTraining {
 public:
  explicit OpenTraining(const Coordinator& coord);  // by which it is stopped
  ~OpenTraining();
  OpenTraining(const OpenTraining&) = delete;
  OpenTraining& operator=(const OpenTraining&) = delete;

  // Whether trainings are under way in this process, and a stop of `coord` stops none of them.
  static bool is_only_elsewhere(const Coordinator& coord);

 private:
  friend struct OpenTrainings;

  const Coordinator coord_;
  const pid_t process_;  // a forked child has none of its parent's trainings
};

}  // namespace longhaul
