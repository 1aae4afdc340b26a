#include "longhaul/ops/optimizers.h"

#include <utility>

#include "longhaul/ops/math_ops.h"

namespace longhaul {

GradientDescentOptimizer::GradientDescentOptimizer(Hyperparameter learning_rate, std::string name)
    : Optimizer(std::move(name)), learning_rate_(learning_rate) {}

Operation GradientDescentOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return scope.add("ApplyGradientDescent", "ApplyGradientDescent",
                   {variable.ref(), hyper(learning_rate_, "learning_rate", variable), gradient});
}

MomentumOptimizer::MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov,
                                     std::string name)
    : Optimizer(std::move(name)), learning_rate_(learning_rate), momentum_(momentum), use_nesterov_(use_nesterov) {}

Operation MomentumOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return scope.add("ApplyMomentum", "ApplyMomentum",
                   {variable.ref(), make_slot(variable, "momentum", 0).ref(),
                    hyper(learning_rate_, "learning_rate", variable), gradient, hyper(momentum_, "momentum", variable)},
                   {{"use_nesterov", use_nesterov_}});
}

AdamOptimizer::AdamOptimizer(Hyperparameter learning_rate, double beta1, double beta2, double epsilon, std::string name)
    : Optimizer(std::move(name)), learning_rate_(learning_rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {}

void AdamOptimizer::prepare(const Scope& /*scope*/, const std::vector<Variable>& /*variables*/) {
  if (beta1_power_) return;
  beta1_power_ = make_scalar("beta1_power", *beta1_.number());
  beta2_power_ = make_scalar("beta2_power", *beta2_.number());
}

Operation AdamOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return scope.add("ApplyAdam", "ApplyAdam",
                   {variable.ref(), make_slot(variable, "m", 0).ref(), make_slot(variable, "v", 0).ref(), *beta1_power_,
                    *beta2_power_, hyper(learning_rate_, "learning_rate", variable), hyper(beta1_, "beta1", variable),
                    hyper(beta2_, "beta2", variable), hyper(epsilon_, "epsilon", variable), gradient});
}

std::vector<Operation> AdamOptimizer::finish(const Scope& scope, const std::vector<Operation>& updates) {
  const Scope after = scope.with_control_dependencies(updates);
  return {ops::assign(after, *beta1_power_, ops::mul(scope, *beta1_power_, *beta1_.number())).op(),
          ops::assign(after, *beta2_power_, ops::mul(scope, *beta2_power_, *beta2_.number())).op()};
}

AdagradOptimizer::AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value, std::string name)
    : Optimizer(std::move(name)),
      learning_rate_(learning_rate),
      initial_accumulator_value_(initial_accumulator_value) {}

Operation AdagradOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return scope.add("ApplyAdagrad", "ApplyAdagrad",
                   {variable.ref(), make_slot(variable, "accumulator", initial_accumulator_value_).ref(),
                    hyper(learning_rate_, "learning_rate", variable), gradient});
}

RMSPropOptimizer::RMSPropOptimizer(Hyperparameter learning_rate, double decay, double momentum, double epsilon,
                                   std::string name)
    : Optimizer(std::move(name)),
      learning_rate_(learning_rate),
      decay_(decay),
      momentum_(momentum),
      epsilon_(epsilon) {}

Operation RMSPropOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return scope.add("ApplyRMSProp", "ApplyRMSProp",
                   {variable.ref(), make_slot(variable, "rms", 1).ref(), make_slot(variable, "momentum", 0).ref(),
                    hyper(learning_rate_, "learning_rate", variable), hyper(decay_, "decay", variable),
                    hyper(momentum_, "momentum", variable), hyper(epsilon_, "epsilon", variable), gradient});
}

}  // namespace longhaul
