#include "longhaul/ops/training/optimizer.h"

#include <fmt/format.h>

#include "longhaul/ops/gradients.h"
#include "longhaul/ops/init_ops.h"
#include "longhaul/ops/training/slot_variable.h"

namespace longhaul {
namespace {

std::vector<Variable> trainable(const Graph& graph) {
  std::vector<Variable> variables;
  for (const VariableInfo& info : ops::trainable_variables(graph)) variables.emplace_back(info);
  return variables;
}

std::string names_of(const std::vector<GradientAndVariable>& pairs) {
  std::string names;
  for (const auto& pair : pairs) names += (names.empty() ? "" : ", ") + pair.variable.name();
  return names;
}

Tensor one_of(const Variable& counter) {
  if (counter.dtype() == kInt64) return Tensor::scalar<int64_t>(1);
  if (counter.dtype() == kInt32) return Tensor::scalar<int32_t>(1);
  throw InvalidArgumentError(
      fmt::format("the global step must be int64 or int32, but {} is {}", counter.name(), dtype_name(counter.dtype())));
}

Operation add_one(const Scope& scope, const Variable& counter, const std::vector<Operation>& after,
                  const std::string& name) {
  const Output one = ops::constant(scope.within(name), one_of(counter), "one");
  return ops::assign_add(scope.with_control_dependencies(after), counter, one, name).op();
}

}  // namespace

Optimizer::Optimizer(std::string name) : name_(std::move(name)) {
  if (name_.empty()) throw InvalidArgumentError("Must specify the optimizer name");
}

Operation Optimizer::minimize(const Output& loss, const std::optional<Variable>& global_step,
                              const std::vector<Variable>& variables) {
  return minimize(Scope(loss.graph()), loss, global_step, variables);
}

Operation Optimizer::minimize(const Scope& scope, const Output& loss, const std::optional<Variable>& global_step,
                              const std::vector<Variable>& variables) {
  return apply_gradients(scope, compute_gradients(scope, loss, variables), global_step);
}

std::vector<GradientAndVariable> Optimizer::compute_gradients(const Scope& scope, const Output& loss,
                                                              const std::vector<Variable>& variables) const {
  const std::vector<Variable> wanted = variables.empty() ? trainable(loss.graph()) : variables;
  std::vector<Output> sources;
  for (const Variable& variable : wanted) sources.push_back(variable.ref());
  const std::vector<Output> gradients = ops::gradients(scope, {loss}, sources);
  std::vector<GradientAndVariable> pairs;
  for (size_t i = 0; i < wanted.size(); ++i) pairs.push_back({gradients[i], wanted[i]});
  return pairs;
}

Operation Optimizer::apply_gradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                                     const std::optional<Variable>& global_step) {
  std::vector<Variable> updated;
  for (const auto& [gradient, variable] : gradients) {
    if (gradient.valid()) updated.push_back(variable);
  }
  if (updated.empty()) {
    throw InvalidArgumentError(
        fmt::format("{}: no gradients for any variable: there is no differentiable path from "
                    "the variables [{}] to the loss",
                    name_, names_of(gradients)));
  }
  hypers_.clear();
  outer_scope_.emplace(scope);
  const std::string name = ops::free_name(scope.graph(), scope.prefix() + name_).substr(scope.prefix().size());
  const Scope inner = scope_.emplace(scope.within(name));
  prepare(inner, updated);
  std::vector<Operation> updates;
  for (const auto& [gradient, variable] : gradients) {
    if (!gradient.valid()) continue;
    const Scope neighbour = inner.within("update_" + variable.name()).on_device_of(variable.ref().op());
    updates.push_back(update(neighbour, gradient, variable));
  }
  for (const Operation& op : finish(inner, updates)) updates.push_back(op);
  if (global_step) updates = {add_one(inner, *global_step, updates, "global_step")};
  const Operation step = ops::group(scope, updates, name);
  scope.graph().add_to_collection(collections::kTrainOp, step);
  return step;
}

Operation Optimizer::update(const Scope& scope, const Output& gradient, const Variable& variable) {
  const std::optional<IndexedSlices> slices = ops::indexed_slices_of(gradient);
  if (!slices) return apply(scope, gradient, variable);
  if (!gradient.shape().compatible_with(variable.shape())) {
    throw InvalidArgumentError(fmt::format("{}: {} is {}, but its gradient {} is for a table of shape {}", name_,
                                           variable.name(), variable.shape().to_string(), gradient.name(),
                                           gradient.shape().to_string()));
  }
  const Operation of_rows = apply_sparse(scope, *slices, variable);
  return of_rows ? of_rows : apply(scope, ops::checked_sum(scope, *slices), variable);
}

std::optional<Variable> Optimizer::get_slot(const Variable& variable, const std::string& slot) const {
  const auto it = slots_.find({variable.ref().op().id(), slot});
  return it == slots_.end() ? std::nullopt : std::optional(it->second);
}

Output Optimizer::hyper(const Hyperparameter& parameter, const std::string& name, const Variable& variable) {
  Output& made = hypers_[{name, variable.dtype()}];
  if (made.valid()) return made;
  const double* number = parameter.number();
  if (number != nullptr) ops::check_float(name_, name, *number);
  ops::check_scalar(name_, name, parameter);
  const Hyperparameter rounded = number != nullptr ? Hyperparameter(static_cast<float>(*number)) : parameter;
  return made = rounded.as_tensor(*scope_, variable.dtype(), name);
}

Variable Optimizer::make_slot(const Variable& like, const std::string& slot, double value) {
  const auto key = std::pair(like.ref().op().id(), slot);
  if (const auto it = slots_.find(key); it != slots_.end()) return it->second;
  const Variable made = ops::slot_variable(*outer_scope_, like, name_, [&](const Scope& scope) {
    return ops::full(scope, like.shape(), value, like.dtype(), "initial_value");
  });
  slots_.emplace(key, made);
  own_variables_.push_back(made);
  return made;
}

Variable Optimizer::make_scalar(const std::string& name, double value, const Variable& neighbour) {
  const Scope& scope = *outer_scope_;
  const std::string full_name = ops::free_name(scope.graph(), scope.prefix() + name);
  const Tensor initial_value = Tensor::scalar(static_cast<float>(value));
  const Scope there = scope.outermost().without_control_dependencies().on_device_of(neighbour.ref().op());
  const Variable made = ops::variable(there, full_name, initial_value, {.trainable = false});
  own_variables_.push_back(made);
  return made;
}

}  // namespace longhaul
