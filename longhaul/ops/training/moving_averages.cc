#include "longhaul/ops/training/moving_averages.h"

#include <fmt/format.h>

#include <set>

#include "longhaul/ops/init_ops.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/training/slot_variable.h"

namespace longhaul {
namespace {

const std::string& saved_name(const VariableInfo& variable) {
  return variable.slice ? variable.slice->full_name : variable.name();
}

void add_variables(const std::vector<VariableInfo>& infos, std::vector<Variable>* variables) {
  for (const VariableInfo& info : infos) variables->emplace_back(info);
}

// A step of gradient descent on half the square of the difference.
Output moved(const Scope& scope, const Variable& average, const Output& value, const Output& rate) {
  const Output difference = ops::sub(scope, average, value);
  return scope.add("ApplyGradientDescent", "AssignMovingAvg", {average.ref(), rate, difference}).output();
}

}  // namespace

ExponentialMovingAverage::ExponentialMovingAverage(Hyperparameter decay, MovingAverageOptions options)
    : decay_(decay), options_(std::move(options)) {
  if (options_.name.empty()) throw InvalidArgumentError("Must specify the name of the moving averages");
  if (const double* number = decay_.number()) {
    ops::check_decay(options_.name, "decay", *number);
  }
  ops::check_scalar(options_.name, "decay", decay_);
}

// 1 - decay: how far an average moves. It is computed in floats, as in TensorFlow: with 0.999 it is 0.00100004673. It
// depends on nothing that the step changes, so tasks of a cluster that change variables need not wait for each other.
Output ExponentialMovingAverage::update_rate(const Scope& scope) const {
  const double* number = decay_.number();
  if (number != nullptr && !options_.num_updates) {
    return ops::constant(scope, 1 - static_cast<float>(*number), "rate");
  }
  const Output decay = decay_.as_tensor(scope, kFloat, "decay");
  if (!options_.num_updates) return ops::sub(scope, 1, decay, "rate");
  const Output updates = ops::cast(scope, *options_.num_updates, kFloat, "num_updates");
  const Output soon = ops::div(scope, ops::add(scope, updates, 1), ops::add(scope, updates, 10));
  return ops::sub(scope, 1, ops::minimum(scope, decay, soon), "rate");
}

void ExponentialMovingAverage::check_new(const Output& averaged) const {
  if (!is_floating(averaged.dtype())) {
    throw InvalidArgumentError(fmt::format("The variables must be half, float, or double: {} is {}", averaged.name(),
                                           dtype_name(averaged.dtype())));
  }
  if (shadows_.contains(averaged)) {
    throw InvalidArgumentError("Moving average already computed for: " + averaged.name());
  }
}

Variable ExponentialMovingAverage::add_shadow(const Scope& scope, const Variable& variable) {
  check_new(variable.ref());
  const Variable shadow = ops::slot_variable(
      scope, variable, options_.name, [&](const Scope& at) { return ops::initialized_value(at, variable.info()); });
  variable.ref().graph().add_to_collection(collections::kMovingAverageVariables, variable.info());
  return shadows_.emplace(variable.ref(), shadow).first->second;
}

Variable ExponentialMovingAverage::add_shadow(const Scope& scope, const Output& tensor) {
  check_new(tensor);
  const Scope root = scope.outermost().without_control_dependencies();
  const std::string name =
      ops::free_name(tensor.graph(), scope.slot_prefix() + tensor.op().name() + "/" + options_.name);
  const Output zeros = ops::zeros(root.within(name), tensor.shape(), tensor.dtype());
  return shadows_.emplace(tensor, ops::variable(root, name, zeros, {.trainable = false})).first->second;
}

Operation ExponentialMovingAverage::apply(const Scope& scope, const std::vector<Variable>& variables) {
  std::vector<Variable> averaged = variables;
  if (averaged.empty()) add_variables(ops::trainable_variables(scope.graph()), &averaged);
  if (averaged.empty()) throw InvalidArgumentError(options_.name + ": there are no variables to average");
  const Scope inner = scope.sub(options_.name);
  const Output rate = update_rate(inner.without_control_dependencies());
  std::vector<Operation> updates;
  for (const Variable& variable : averaged) {
    const Scope beside = inner.on_device_of(variable.ref().op());
    updates.push_back(moved(beside, add_shadow(inner, variable), ops::read_value(beside, variable), rate).op());
  }
  return ops::group(inner, updates, "update");
}

Operation ExponentialMovingAverage::apply_to_tensors(const Scope& scope, const std::vector<Output>& tensors) {
  const Scope inner = scope.sub(options_.name);
  const Output rate = update_rate(inner.without_control_dependencies());
  std::vector<Operation> updates;
  for (const Output& tensor : tensors) {
    const Variable shadow = add_shadow(inner, tensor);
    updates.push_back(options_.zero_debias ? move_debiased(inner, shadow, tensor, rate)
                                           : moved(inner, shadow, tensor, rate).op());
  }
  return ops::group(inner, updates, "update");
}

Operation ExponentialMovingAverage::move_debiased(const Scope& scope, const Variable& shadow, const Output& value,
                                                  const Output& rate) const {
  const Scope root = Scope(scope.graph()).on_device_of(shadow.ref().op());
  const Scope beside = root.within(scope.slot_prefix() + shadow.name());
  const auto zeros = [&](const char* name, const Shape& shape) {
    const Output initial = ops::zeros(beside.within(name), shape, shadow.dtype());
    return ops::variable(beside, name, initial, {.trainable = false});
  };
  const Output biased = moved(scope, zeros("biased", shadow.shape()), value, rate);
  const Variable local_step = zeros("local_step", {});
  const Output count = ops::assign_add(scope, local_step, ops::ones(scope, {}, local_step.dtype()));
  const Output weight = ops::sub(scope, 1, ops::pow(scope, ops::sub(scope, 1, rate), count));
  return ops::assign(scope, shadow, ops::cast(scope, ops::div(scope, biased, weight), shadow.dtype())).op();
}

std::optional<Variable> ExponentialMovingAverage::average(const Output& tensor) const {
  const auto it = shadows_.find(tensor);
  return it == shadows_.end() ? std::nullopt : std::optional(it->second);
}

std::string ExponentialMovingAverage::average_name(const std::string& prefix, const Variable& variable) const {
  if (const auto shadow = average(variable)) return saved_name(shadow->info());
  const std::string name = prefix + saved_name(variable.info()) + "/" + options_.name;
  return variable.info().slice ? name : ops::free_name(variable.ref().graph(), name);
}

std::map<std::string, std::vector<Variable>> ExponentialMovingAverage::variables_to_restore(
    const std::string& prefix, const Graph& graph, const std::vector<Variable>& averaged) const {
  std::vector<Variable> all = averaged;
  if (all.empty()) {
    add_variables(ops::trainable_variables(graph), &all);
    add_variables(graph.collection_of<VariableInfo>(collections::kMovingAverageVariables), &all);
  }
  std::set<std::string> seen;
  std::map<std::string, std::vector<Variable>> by_average, by_own_name;
  for (const Variable& variable : all) {
    if (seen.insert(variable.name()).second) by_average[average_name(prefix, variable)].push_back(variable);
  }
  for (const VariableInfo& variable : ops::global_variables(graph)) {
    if (!seen.contains(variable.name())) by_own_name[saved_name(variable)].emplace_back(variable);
  }
  by_average.merge(by_own_name);  // leaves the shadows themselves
  return by_average;
}

}  // namespace longhaul
