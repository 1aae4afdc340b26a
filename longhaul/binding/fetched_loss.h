#pragma once

#include <ATen/core/Tensor.h>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The loss of a bound program's last step, and how runs fetch it: with the step, or alone. Not synchronised.
class FetchedLoss {
 public:
  void begin_step() { with_step_ = false; }
  void end_step(const at::Tensor& loss);

  // The run under way fetches the step.
  void ask() { with_step_ = sometimes_with_step_ = true; }
  // The run under way fetches the loss. True: some runs fetch the step, and others the loss alone.
  bool fetched();

  // InvalidArgumentError: the step function returned something else than one element.
  Tensor value() const;

 private:
  at::Tensor loss_;
  bool with_step_ = false;
  bool sometimes_with_step_ = false, sometimes_alone_ = false;
};

}  // namespace longhaul
