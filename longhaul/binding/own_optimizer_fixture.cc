#include "longhaul/binding/own_optimizer_fixture.h"

#include "longhaul/binding/values/optimizer_state.h"

namespace longhaul {

LionState& Lion::state_of(const torch::Tensor& parameter) {
  auto& state = state_[optimizer_state_key(parameter)];
  if (!state) {
    state = std::make_unique<LionState>();
    static_cast<LionState&>(*state).momentum(torch::zeros_like(parameter));
  }
  return static_cast<LionState&>(*state);
}

void Lion::update(torch::Tensor& parameter, LionOptions& options) {
  const torch::Tensor gradient = parameter.grad();
  LionState& state = state_of(parameter);
  const auto [beta1, beta2] = options.betas;
  const double rate = options.lr() * (steps % 3 == 0 ? 0.5 : 1) * (state.norms.size() == 3 ? 0.9 : 1);
  state.largest = std::max(state.largest * 0.99, gradient.abs().max().item<double>());
  state.norms.push_back(gradient.norm().to(torch::kDouble));
  if (state.norms.size() > 3) state.norms.pop_front();
  const torch::Tensor direction = (state.momentum() * beta1 + gradient * (1 - beta1)).sign() / state.largest;
  parameter.add_(direction, -rate * (1 + state.norms.front().item<double>() / 100));
  state.momentum().mul_(beta2).add_(gradient, 1 - beta2);
  drift = drift.defined() ? drift + direction.sum() : direction.sum();
  state.step(state.step() + 1);
}

torch::Tensor Lion::step(LossClosure) {
  const torch::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    for (torch::Tensor& parameter : group.params()) {
      if (parameter.grad().defined()) update(parameter, static_cast<LionOptions&>(group.options()));
    }
  }
  ++steps;
  return {};
}

OptimizerKind<Lion, LionOptions, LionState> lion_kind() {
  return OptimizerKind<Lion, LionOptions, LionState>("Lion")
      .option("lr", &LionOptions::lr)
      .option("beta1", [](LionOptions& o) -> double& { return std::get<0>(o.betas); })
      .option("beta2", [](LionOptions& o) -> double& { return std::get<1>(o.betas); })
      .tensor("momentum", &LionState::momentum)
      .number("step", &LionState::step)
      .number("largest", &LionState::largest)
      .tensors("norms", &LionState::norms, at::kDouble)
      .own_number("steps", &Lion::steps)
      .own_tensor("drift", &Lion::drift);
}

std::unique_ptr<torch::optim::Optimizer> make_lion(const std::vector<torch::Tensor>& parameters) {
  register_optimizer(lion_kind());
  return std::make_unique<Lion>(parameters);
}

}  // namespace longhaul
