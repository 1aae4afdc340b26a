#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "longhaul/binding/kept_values.h"

namespace torch::optim {
class Optimizer;
}

namespace longhaul {

struct LossScaleOptions {  // the defaults are those of torch.cuda.amp.GradScaler
  double initial_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;  // updates without an infinity or NaN before the scale grows
};

// Scales the loss, so that small gradients of 16-bit floats do not become 0, with the rules of PyTorch's
// torch.cuda.amp.GradScaler: step() divides the gradients by the scale, and leaves the step out if one of them is an
// infinity or NaN; update() then makes the scale smaller, or larger after growth_interval updates without any.
//
//   lh::LossScale scale;
//   TorchTrainingOptions options;
//   options.kept.keep("loss_scale", scale);        // kept/loss_scale/scale, kept/loss_scale/growth_tracker
//   const auto training = torch_training(scope, *net, adam, [&](const TorchStep& step) {
//     adam.zero_grad();
//     const torch::Tensor loss = loss_of(net, batch(step.number));
//     scale.scale(loss).backward();
//     scale.step(adam);                            // in place of adam.step()
//     scale.update();                              // once, after the step() of every optimizer
//     return loss;
//   }, options);
//
// To clip gradients, call unscale(adam) before. With gradients that several steps accumulate, call step() and update()
// in those that update the weights. bfloat16 has the range of float and needs no scale. Not synchronised.
class LossScale {
 public:
  // InvalidArgumentError: a factor is on the wrong side of 1, the scale is not above 0, or the interval is not.
  explicit LossScale(const LossScaleOptions& options = {});

  at::Tensor scale(const at::Tensor& loss) const;  // the loss times the scale, in its shape and dtype

  // Divides the gradients of the optimizer's parameters by the scale. FailedPreconditionError: that has been done since
  // the last update().
  void unscale(torch::optim::Optimizer& optimizer);

  // Unscales, unless that was done, and steps the optimizer if all gradients are finite. Returns whether it stepped.
  // FailedPreconditionError: it was called for this optimizer since the last update().
  bool step(torch::optim::Optimizer& optimizer);

  // FailedPreconditionError: no optimizer was stepped or unscaled since the last update().
  void update();

  double current() const { return scale_; }

  // For KeptValues::keep().
  void keep_in(KeptValues& kept, const std::string& name);

 private:
  struct Use {  // of an optimizer, since the last update
    const torch::optim::Optimizer* optimizer;
    bool found_infinite = false;
    bool has_stepped = false;
  };
  Use* find(const torch::optim::Optimizer& optimizer);
  Use& unscaled(torch::optim::Optimizer& optimizer);
  void warn_of_skipped_steps(bool skipped);

  const LossScaleOptions options_;
  float scale_;
  int64_t growth_tracker_ = 0;  // updates without an infinity or NaN
  std::vector<Use> uses_;
  int64_t skipped_ = 0;  // updates in a row that found one
};

}  // namespace longhaul
