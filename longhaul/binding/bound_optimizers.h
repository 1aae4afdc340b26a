#pragma once

#include <ATen/core/Tensor.h>

#include <deque>
#include <string>
#include <vector>

#include "longhaul/binding/values/optimizer_record.h"
#include "longhaul/binding/values/torch_values.h"

namespace longhaul {

// The optimizers of a bound program, and whose options they have: at first the program's; after a restore the
// checkpoint's, or at the next step the program's again if restores_options(false) was called. Not synchronised.
class BoundOptimizers {
 public:
  struct Bound {
    std::string name;
    const torch::optim::Optimizer* optimizer;
    std::vector<size_t> group_sizes;
    OptimizerRecord made;      // by the program
    OptimizerRecord recorded;  // in checkpoints: the source of its current options
  };

  void restores_options(bool restores) { restores_options_ = restores; }

  // `values` are its optimizer_values(). The result stays where it is.
  Bound& add(const std::string& name, torch::optim::Optimizer& optimizer, const torch::nn::Module& module,
             const std::vector<TorchValue>& values);

  // FailedPreconditionError: one was given parameters after it was added.
  void check_groups() const;

  // A checkpoint was restored that has this record. Returns what to log about the options; "": nothing.
  std::string restored(Bound& bound, const OptimizerRecord& stored);

  // Before a step: the program's options, if they count.
  void reinstate_options();

 private:
  struct Option {
    TorchValue value;
    at::Tensor made;  // by the program
  };

  std::deque<Bound> optimizers_;
  std::vector<Option> options_;
  bool restores_options_ = true;
  bool are_restored_ = false;  // and the program's are to be reinstated
};

}  // namespace longhaul
