#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/ops/external_variable.h"

namespace longhaul {

// Where a Trainer's loops are, and whether the training run has finished: what checkpoints have of them besides the
// global step. The Trainer's thread changes it, within steps; savers read it.
//
//   outer loop 0: steps() or epochs()      completed once a later outer loop has begun
//   outer loop 1: epochs(), epoch 3
//       inner loop 0 of this epoch: batches(), all taken
//       inner loop 1: batches(), 17 taken
class LoopPosition {
 public:
  struct Values {
    int64_t outer = 0;         // the current outer loop
    bool outer_left = false;   // by break: the loop is over
    int64_t epoch = 0;         // of it
    int64_t inner = 0;         // the current inner loop of this epoch
    bool inner_left = false;   // by break, or at its end: the loop is over
    int64_t batch = 0;         // how many batches of it were taken
    uint64_t batch_look = 0;   // at the last of these (look_at_batch()); 0: not known
    int64_t epoch_size = 0;    // how many batches the first inner loop had in the last whole epoch; 0: not known
    bool finished = false;     // Trainer::finish()
    double best_metric = 0;    // of Trainer::validate()
    int64_t best_step = -1;    // the step that has it; -1: none yet
    int64_t without_gain = 0;  // validations since then
    std::string reason{};      // why it has finished
    // When this epoch began: the state of libtorch's default generator (undefined: no epoch has), and
    // TorchLoop::short_values() (null: none has).
    at::Tensor generator{};
    std::shared_ptr<const std::map<std::string, std::string>> short_values{};
  };

  // Adds the values to the graph: "trainer/position", "trainer/reason", "trainer/epoch_generator",
  // "trainer/epoch_values".
  void add_to(const Scope& scope);

  Values get() const EXCLUDES(mutex_);
  template <typename Change>
  void change(const Change& change) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    change(values_);
  }
  // Whether the checkpoint that was restored last had no position, because a program without a Trainer saved it.
  bool is_missing() const EXCLUDES(mutex_);

 private:
  Tensor numbers() const EXCLUDES(mutex_);
  void set_numbers(const Tensor& numbers) EXCLUDES(mutex_);
  void add_epoch_values(const Scope& scope);

  mutable Mutex mutex_;
  Values values_ GUARDED_BY(mutex_);
  bool is_missing_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
