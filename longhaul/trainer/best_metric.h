#pragma once

#include <cstdint>

#include "longhaul/trainer/loop_position.h"
#include "longhaul/trainer/trainer.h"

namespace longhaul {

// The metrics of a Trainer's validations: the best of them, and how many since then were none. Both are in checkpoints.
// One thread.
class BestMetric {
 public:
  BestMetric(LoopPosition& position, const TrainerOptions& options) : position_(position), options_(options) {}

  // Of the module after this step. Finishes the training, if EarlyStopping says so.
  void take(double metric, int64_t step);

 private:
  bool is_gain(double metric, const LoopPosition::Values& best) const;

  LoopPosition& position_;
  const TrainerOptions& options_;
};

}  // namespace longhaul
