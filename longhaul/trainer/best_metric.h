#pragma once

#include <cstdint>
#include <limits>

#include "longhaul/trainer/loop_position.h"
#include "longhaul/trainer/trainer.h"

namespace longhaul {

// The metrics of a Trainer's validations: the best of them, and how many since then were none. Both are in checkpoints.
// One thread.
class BestMetric {
 public:
  BestMetric(LoopPosition& position, const TrainerOptions& options) : position_(position), options_(options) {}

  // Of the module after this step. Finishes the training, if EarlyStopping says so. Warns once of metrics that only get
  // worse: the mode may be the wrong one, and the best checkpoint the worst.
  void take(double metric, int64_t step);

 private:
  bool is_gain(double metric, const LoopPosition::Values& best) const;
  void look_at_direction(double metric, bool gained, bool is_first);

  LoopPosition& position_;
  const TrainerOptions& options_;
  double last_ = std::numeric_limits<double>::quiet_NaN();  // the metric of the validation before
  bool saw_first_ = false;  // validation of the training; a restart does not know how those before went
  bool has_warned_ = false;
  int gains_ = 0;  // since then
  int worse_ = 0;  // validations in a row, each worse than the one before
};

}  // namespace longhaul
