#pragma once

#include <torch/optim/optimizer.h>

#include <deque>
#include <map>

#include "longhaul/binding/torch_resume_fixture.h"

namespace longhaul {

struct LionOptions : torch::optim::OptimizerCloneableOptions<LionOptions> {
  explicit LionOptions(double lr = 0.01) : lr_(lr) {}
  double get_lr() const override { return lr_; }
  void set_lr(const double rate) override { lr_ = rate; }
  std::tuple<double, double> betas{0.9, 0.99};
  TORCH_ARG(double, lr);
};

// With more than the paper's, so that each kind of field is there.
struct LionState : torch::optim::OptimizerCloneableParamState<LionState> {
  double largest = 1;
  std::deque<torch::Tensor> norms;  // of the last three gradients, in double
  TORCH_ARG(torch::Tensor, momentum) = {};
  TORCH_ARG(int64_t, step) = 0;
};

// Chen et al., "Symbolic Discovery of Optimization Algorithms", 2023, algorithm 2, at half the rate in every third
// step.
class Lion : public torch::optim::Optimizer {
 public:
  explicit Lion(const std::vector<torch::Tensor>& parameters, const LionOptions& options = LionOptions())
      : Optimizer({torch::optim::OptimizerParamGroup(parameters)}, std::make_unique<LionOptions>(options)) {}
  torch::Tensor step(LossClosure closure = nullptr) override;

  int64_t steps = 0;
  torch::Tensor drift;  // of all updates together; none before the first

 private:
  LionState& state_of(const torch::Tensor& parameter);
  void update(torch::Tensor& parameter, LionOptions& options);
};

OptimizerKind<Lion, LionOptions, LionState> lion_kind();

std::unique_ptr<torch::optim::Optimizer> make_lion(const std::vector<torch::Tensor>& parameters);

}  // namespace longhaul
