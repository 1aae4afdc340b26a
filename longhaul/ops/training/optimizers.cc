#include "longhaul/ops/training/optimizers.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "longhaul/ops/math_ops.h"

namespace longhaul {
namespace {

void append(std::vector<Output>* inputs, const std::vector<Output>& gradient) {
  inputs->insert(inputs->end(), gradient.begin(), gradient.end());
}

void check_size(const char* optimizer, const char* argument, double value) {
  ops::check_argument(value >= 0, optimizer, argument, "0 or above", value);
}

// 1 is taken, as in TensorFlow: the average stays as it starts, and training goes on.
void check_decay_or_one(const char* optimizer, const char* argument, double value) {
  if (value != 1) ops::check_decay(optimizer, argument, value);
}

// The numbers above 0 that a type takes for 0 end with `none`, those that it takes for infinity begin with `infinite`.
struct Range {
  double none, infinite;
};

Range range_of(DType dtype) {
  switch (dtype) {
    case kHalf: return {0x1p-25, 65520};
    case kBFloat16: return {0x1p-134, 0x1.FFp127};
    case kFloat: return {0x1p-150, 0x1.FFFFFFp127};
    default: return {0, HUGE_VAL};
  }
}

// An accumulator that starts with 0 against the program's word is divided by.
void check_start(const char* optimizer, double start, const Variable& variable) {
  const Range range = range_of(variable.dtype());
  ops::check_argument(start == 0 || (start > range.none && start < range.infinite), optimizer,
                      "initial_accumulator_value", std::string("within the range of ") + dtype_name(variable.dtype()),
                      start);
}

}  // namespace

Operation RowOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return add(scope, "Apply", {gradient}, variable);
}

Operation RowOptimizer::apply_sparse(const Scope& scope, const IndexedSlices& gradient, const Variable& variable) {
  return add(scope, "SparseApply", {gradient.values, gradient.indices}, variable);
}

GradientDescentOptimizer::GradientDescentOptimizer(Hyperparameter learning_rate, std::string name)
    : Optimizer(std::move(name)), learning_rate_(learning_rate) {}

Operation GradientDescentOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  return scope.add("ApplyGradientDescent", "ApplyGradientDescent",
                   {variable.ref(), hyper(learning_rate_, "learning_rate", variable), gradient});
}

Operation GradientDescentOptimizer::apply_sparse(const Scope& scope, const IndexedSlices& gradient,
                                                 const Variable& variable) {
  const Output change = ops::mul(scope, gradient.values, hyper(learning_rate_, "learning_rate", variable), "mul");
  const Output updates = change.dtype() == variable.dtype() ? change : ops::cast(scope, change, variable.dtype());
  return scope.add("ScatterSub", "ScatterSub", {variable.ref(), gradient.indices, updates});
}

MomentumOptimizer::MomentumOptimizer(Hyperparameter learning_rate, Hyperparameter momentum, bool use_nesterov,
                                     std::string name)
    : RowOptimizer(std::move(name)), learning_rate_(learning_rate), momentum_(momentum), use_nesterov_(use_nesterov) {}

Operation MomentumOptimizer::add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                                 const Variable& variable) {
  std::vector<Output> inputs = {variable.ref(), make_slot(variable, "momentum", 0).ref(),
                                hyper(learning_rate_, "learning_rate", variable)};
  append(&inputs, gradient);
  inputs.push_back(hyper(momentum_, "momentum", variable));
  return scope.add(kind + "Momentum", kind + "Momentum", inputs, {{"use_nesterov", use_nesterov_}});
}

AdamOptimizer::AdamOptimizer(Hyperparameter learning_rate, double beta1, double beta2, double epsilon, std::string name)
    : Optimizer(std::move(name)), learning_rate_(learning_rate), beta1_(beta1), beta2_(beta2), epsilon_(epsilon) {
  ops::check_decay("AdamOptimizer", "beta1", beta1);
  ops::check_decay("AdamOptimizer", "beta2", beta2);
  check_size("AdamOptimizer", "epsilon", epsilon);
}

void AdamOptimizer::prepare(const Scope& /*scope*/, const std::vector<Variable>& variables) {
  if (beta1_power_) return;
  const auto comes_first = [](const Variable& a, const Variable& b) { return a.name() < b.name(); };
  const Variable& first = *std::min_element(variables.begin(), variables.end(), comes_first);
  beta1_power_ = make_scalar("beta1_power", *beta1_.number(), first);
  beta2_power_ = make_scalar("beta2_power", *beta2_.number(), first);
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

AdamWOptimizer::AdamWOptimizer(Hyperparameter learning_rate, const AdamWOptions& options, std::string name)
    : AdamOptimizer(learning_rate, options.beta1, options.beta2, options.epsilon, std::move(name)),
      learning_rate_(learning_rate),
      weight_decay_(options.weight_decay),
      decays_(options.decays) {
  check_size("AdamWOptimizer", "weight_decay", options.weight_decay);
}

Operation AdamWOptimizer::apply(const Scope& scope, const Output& gradient, const Variable& variable) {
  if (decays_ && !decays_(variable)) return AdamOptimizer::apply(scope, gradient, variable);
  const Output factor = ops::mul(scope, hyper(learning_rate_, "learning_rate", variable),
                                 hyper(weight_decay_, "weight_decay", variable), "decay");
  const Output decayed = ops::assign_sub(scope, variable, ops::mul(scope, variable, factor));
  return AdamOptimizer::apply(scope.with_control_dependencies({decayed.op()}), gradient, variable);
}

AdagradOptimizer::AdagradOptimizer(Hyperparameter learning_rate, double initial_accumulator_value, std::string name)
    : RowOptimizer(std::move(name)),
      learning_rate_(learning_rate),
      initial_accumulator_value_(initial_accumulator_value) {
  ops::check_argument(initial_accumulator_value > 0, "AdagradOptimizer", "initial_accumulator_value", "above 0",
                      initial_accumulator_value);
}

Operation AdagradOptimizer::add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                                const Variable& variable) {
  check_start("AdagradOptimizer", initial_accumulator_value_, variable);
  std::vector<Output> inputs = {variable.ref(), make_slot(variable, "accumulator", initial_accumulator_value_).ref(),
                                hyper(learning_rate_, "learning_rate", variable)};
  append(&inputs, gradient);
  return scope.add(kind + "Adagrad", kind + "Adagrad", inputs);
}

RMSPropOptimizer::RMSPropOptimizer(Hyperparameter learning_rate, double decay, double momentum, double epsilon,
                                   bool centered, std::string name)
    : RowOptimizer(std::move(name)),
      learning_rate_(learning_rate),
      decay_(decay),
      momentum_(momentum),
      epsilon_(epsilon),
      centered_(centered) {
  check_decay_or_one("RMSPropOptimizer", "decay", decay);
  check_size("RMSPropOptimizer", "epsilon", epsilon);
}

Operation RMSPropOptimizer::add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                                const Variable& variable) {
  const Output rms = make_slot(variable, "rms", 1).ref();
  std::vector<Output> inputs = {variable.ref()};
  if (centered_) inputs.push_back(make_slot(variable, "mg", 0).ref());
  const Output moment = make_slot(variable, "momentum", 0).ref();
  inputs.insert(inputs.end(),
                {rms, moment, hyper(learning_rate_, "learning_rate", variable), hyper(decay_, "decay", variable),
                 hyper(momentum_, "momentum", variable), hyper(epsilon_, "epsilon", variable)});
  append(&inputs, gradient);
  const std::string type = kind + (centered_ ? "CenteredRMSProp" : "RMSProp");
  return scope.add(type, type, inputs);
}

AdadeltaOptimizer::AdadeltaOptimizer(Hyperparameter learning_rate, double rho, double epsilon, std::string name)
    : RowOptimizer(std::move(name)), learning_rate_(learning_rate), rho_(rho), epsilon_(epsilon) {
  check_decay_or_one("AdadeltaOptimizer", "rho", rho);
  check_size("AdadeltaOptimizer", "epsilon", epsilon);
}

Operation AdadeltaOptimizer::add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                                 const Variable& variable) {
  std::vector<Output> inputs = {variable.ref(),
                                make_slot(variable, "accum", 0).ref(),
                                make_slot(variable, "accum_update", 0).ref(),
                                hyper(learning_rate_, "lr", variable),
                                hyper(rho_, "rho", variable),
                                hyper(epsilon_, "epsilon", variable)};
  append(&inputs, gradient);
  return scope.add(kind + "Adadelta", kind + "Adadelta", inputs);
}

FtrlOptimizer::FtrlOptimizer(Hyperparameter learning_rate, const FtrlOptions& options, std::string name)
    : RowOptimizer(std::move(name)), learning_rate_(learning_rate), options_(options) {
  if (const double* rate = learning_rate_.number()) {
    ops::check_argument(static_cast<float>(*rate) > 0, "FtrlOptimizer", "learning_rate", "above 0", *rate);
  }
  ops::check_argument(options.learning_rate_power <= 0, "FtrlOptimizer", "learning_rate_power", "0 or below",
                      options.learning_rate_power);
  const auto check = [](const char* option, double value) { check_size("FtrlOptimizer", option, value); };
  check("initial_accumulator_value", options.initial_accumulator_value);
  check("l1_regularization_strength", options.l1_regularization_strength);
  check("l2_regularization_strength", options.l2_regularization_strength);
  check("l2_shrinkage_regularization_strength", options.l2_shrinkage_regularization_strength);
}

Operation FtrlOptimizer::add(const Scope& scope, const std::string& kind, const std::vector<Output>& gradient,
                             const Variable& variable) {
  check_start("FtrlOptimizer", options_.initial_accumulator_value, variable);
  const bool shrinks = options_.l2_shrinkage_regularization_strength > 0;
  const auto number = [&](double value, const char* name) { return hyper(value, name, variable); };
  std::vector<Output> inputs = {variable.ref(), make_slot(variable, "accum", options_.initial_accumulator_value).ref(),
                                make_slot(variable, "linear", 0).ref()};
  append(&inputs, gradient);
  inputs.insert(inputs.end(), {hyper(learning_rate_, "learning_rate", variable),
                               number(options_.l1_regularization_strength, "l1_regularization_strength"),
                               number(options_.l2_regularization_strength, "l2_regularization_strength")});
  if (shrinks) {
    inputs.push_back(number(options_.l2_shrinkage_regularization_strength, "l2_shrinkage_regularization_strength"));
  }
  inputs.push_back(number(options_.learning_rate_power, "learning_rate_power"));
  const std::string type = kind + (shrinks ? "FtrlV2" : "Ftrl");
  return scope.add(type, type, inputs);
}

}  // namespace longhaul
