#include "longhaul/ops/state_ops.h"

#include <fmt/format.h>

#include <unordered_map>

#include "longhaul/ops/variable_name.h"

namespace longhaul::ops {
namespace {

constexpr char kGlobalStepName[] = "global_step";

Output add_variable_op(const Scope& root, const std::string& name, const Output& initial_value, bool validate_shape) {
  if (validate_shape && !initial_value.shape().fully_defined()) {
    throw InvalidArgumentError(fmt::format("variable {}: the initial value {} must have a fully defined shape, not {}",
                                           name, initial_value.name(), initial_value.shape().to_string()));
  }
  return root
      .add("VariableV2", name, {},
           {{"dtype", initial_value.dtype()},
            {"shape", initial_value.shape()},
            {"container", std::string()},
            {"shared_name", std::string()}})
      .output();
}

std::vector<VariableInfo> variables_in(const Graph& graph, const std::string& key) {
  return graph.collection_of<VariableInfo>(key);
}

// Rebuilds an expression so that it can be computed before the variables that it reads are initialised. What depends on
// no variable is used as it is.
class UninitializedReads {
 public:
  explicit UninitializedReads(const Scope& scope) : scope_(scope) {
    for (const char* key : {collections::kGlobalVariables, collections::kLocalVariables}) {
      for (const VariableInfo& info : variables_in(scope.graph(), key)) variables_[info.ref] = info;
    }
  }

  Output replaced(const Output& value) {
    const auto found = variables_.find(value);
    if (found != variables_.end()) return initialized(found->second);
    const Operation op = value.op();
    const auto before = rebuilt_.find(op);
    if (before == rebuilt_.end()) return Output(rebuilt_.emplace(op, rebuild(op)).first->second, value.index());
    return Output(before->second, value.index());
  }

 private:
  Output initialized(const VariableInfo& variable) {
    const auto [it, fresh] = values_.try_emplace(variable.ref);
    if (fresh) it->second = initialized_value(scope_, variable);
    return it->second;
  }

  Operation rebuild(const Operation& op) {
    std::vector<Output> inputs;
    for (size_t i = 0; i < op.inputs().size(); ++i) {
      const bool as_variable = static_cast<int>(i) < op.ref_inputs();
      inputs.push_back(as_variable ? op.inputs()[i] : replaced(op.inputs()[i]));
    }
    if (inputs == op.inputs()) return op;
    return scope_.add(op.type(), op.name().substr(op.name().rfind('/') + 1), inputs, op.attrs());
  }

  const Scope scope_;
  std::unordered_map<Output, VariableInfo, OutputHash> variables_;
  std::unordered_map<Output, Output, OutputHash> values_;
  std::unordered_map<Operation, Operation, OperationHash> rebuilt_;
};

std::vector<Output> refs_of(const std::vector<VariableInfo>& variables) {
  std::vector<Output> refs;
  for (const VariableInfo& variable : variables) refs.push_back(variable.ref);
  return refs;
}

}  // namespace

Output placeholder(const Scope& scope, DType dtype, Shape shape, std::string_view name) {
  return scope.add("Placeholder", name, {}, {{"dtype", dtype}, {"shape", std::move(shape)}}).output();
}

Output placeholder_with_default(const Scope& scope, const Output& value, Shape shape, std::string_view name) {
  return scope.add("PlaceholderWithDefault", name, {value}, {{"dtype", value.dtype()}, {"shape", std::move(shape)}})
      .output();
}

Output constant(const Scope& scope, Tensor value, std::string_view name) {
  const DType dtype = value.dtype();
  return scope.add("Const", name, {}, {{"value", std::move(value)}, {"dtype", dtype}}).output();
}

Variable variable(const Scope& scope, std::string_view name, const Output& initial_value,
                  const VariableOptions& options) {
  const std::string full_name = new_variable_name(scope, name);
  const Scope root = scope.outermost(), inner = root.within(full_name);
  VariableInfo info;
  info.trainable = options.trainable;
  info.slice = options.slice;
  info.ref = add_variable_op(root, full_name, initial_value, options.validate_shape);
  info.initial_value = UninitializedReads(inner).replaced(initial_value);
  info.initializer =
      inner.add("Assign", "Assign", {info.ref, info.initial_value}, {{"validate_shape", options.validate_shape}});
  info.read = inner.on_device_of(info.ref.op()).add("Identity", "read", {info.ref}).output();
  scope.graph().add_to_collection(options.collection, info);
  if (options.trainable) scope.graph().add_to_collection(collections::kTrainableVariables, info);
  return Variable(std::move(info));
}

Variable variable(const Scope& scope, std::string_view name, Tensor initial_value, const VariableOptions& options) {
  const Scope inner = scope.outermost().within(new_variable_name(scope, name));
  return variable(scope, name, constant(inner, std::move(initial_value), "initial_value"), options);
}

Variable local_variable(const Scope& scope, std::string_view name, const Output& initial_value) {
  return variable(scope, name, initial_value, {.trainable = false, .collection = collections::kLocalVariables});
}

Output read_value(const Scope& scope, const Variable& variable, std::string_view name) {
  return scope.on_device_of(variable.ref().op()).add("Identity", name, {variable.ref()}).output();
}

Output initialized_value(const Scope& scope, const VariableInfo& variable, std::string_view name) {
  return scope.add("InitializedValue", name, {variable.ref, variable.initial_value}).output();
}

Output assign(const Scope& scope, const Variable& variable, const Output& value, std::string_view name) {
  return scope.add("Assign", name, {variable.ref(), value}, {{"validate_shape", true}}).output();
}

Output assign_add(const Scope& scope, const Variable& variable, const Output& value, std::string_view name) {
  return scope.add("AssignAdd", name, {variable.ref(), value}).output();
}

Output assign_sub(const Scope& scope, const Variable& variable, const Output& value, std::string_view name) {
  return scope.add("AssignSub", name, {variable.ref(), value}).output();
}

Output count_up_to(const Scope& scope, const Variable& variable, int64_t limit, std::string_view name) {
  return scope.add("CountUpTo", name, {variable.ref()}, {{"limit", limit}}).output();
}

Output identity(const Scope& scope, const Output& value, std::string_view name) {
  return scope.add("Identity", name, {value}).output();
}

Output shape(const Scope& scope, const Output& value, std::string_view name) {
  return scope.add("Shape", name, {value}).output();
}

Operation no_op(const Scope& scope, std::string_view name) {
  return scope.add("NoOp", name);
}

Operation group(const Scope& scope, const std::vector<Operation>& operations, std::string_view name) {
  return scope.with_control_dependencies(operations).add("NoOp", name);
}

Output is_variable_initialized(const Scope& scope, const Variable& variable, std::string_view name) {
  return scope.add("IsVariableInitialized", name, {variable.ref()}).output();
}

Operation host_function(const Scope& scope, const std::vector<Output>& inputs, std::vector<DType> results,
                        HostFunction function, std::string_view name) {
  return scope.add("HostFunction", name, inputs,
                   {{"function", std::make_shared<HostFunction>(std::move(function))}, {"dtypes", std::move(results)}});
}

std::vector<VariableInfo> global_variables(const Graph& graph) {
  return variables_in(graph, collections::kGlobalVariables);
}
std::vector<VariableInfo> local_variables(const Graph& graph) {
  return variables_in(graph, collections::kLocalVariables);
}
std::vector<VariableInfo> trainable_variables(const Graph& graph) {
  return variables_in(graph, collections::kTrainableVariables);
}

Operation variables_initializer(const Scope& scope, const std::vector<VariableInfo>& variables, std::string_view name) {
  std::vector<Operation> initializers;
  for (const VariableInfo& variable : variables) initializers.push_back(variable.initializer);
  return group(scope, initializers, name);
}

Operation global_variables_initializer(const Scope& scope) {
  return variables_initializer(scope, global_variables(scope.graph()));
}

Operation local_variables_initializer(const Scope& scope) {
  return variables_initializer(scope, local_variables(scope.graph()));
}

Output report_uninitialized_variables(const Scope& scope, const std::vector<VariableInfo>& variables,
                                      std::string_view name) {
  return scope.add("ReportUninitializedVariables", name, refs_of(variables)).output();
}

Variable create_global_step(const Scope& scope) {
  const Scope root = scope.outermost().without_control_dependencies();
  const std::string name = scope.slot_prefix() + kGlobalStepName;
  if (root.graph().name_taken(name) || get_global_step(root.graph())) {
    throw AlreadyExistsError("\"global_step\" already exists");
  }
  const Variable step = variable(root, name, Tensor::scalar<int64_t>(0), {.trainable = false});
  root.graph().add_to_collection(collections::kGlobalStep, step.info());
  return step;
}

std::optional<Variable> get_global_step(const Graph& graph) {
  for (const char* key : {collections::kGlobalStep, collections::kGlobalVariables}) {
    for (const VariableInfo& info : variables_in(graph, key)) {
      if (key == std::string_view(collections::kGlobalVariables) && info.name() != kGlobalStepName) continue;
      if (!is_integer(info.ref.dtype()))
        throw InvalidArgumentError("the global step does not have integer type: " + info.name());
      if (info.ref.shape() != Shape{}) {
        throw InvalidArgumentError("the global step is not scalar: " + info.name() + " " +
                                   info.ref.shape().to_string());
      }
      return Variable(info);
    }
  }
  return std::nullopt;
}

Variable global_step(const Scope& scope) {
  const std::optional<Variable> found = get_global_step(scope.graph());
  return found ? *found : create_global_step(scope);
}

}  // namespace longhaul::ops
