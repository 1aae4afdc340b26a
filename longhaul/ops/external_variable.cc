#include "longhaul/ops/external_variable.h"

#include <algorithm>

#include "longhaul/ops/saveable.h"
#include "longhaul/ops/variable_name.h"

namespace longhaul::ops {
namespace {

constexpr const char* kProgramValueAttr = "program_value";
constexpr const char* kProgramStepType = "ProgramStep";

// Called with nothing it reads, with a value it assigns.
std::shared_ptr<HostFunction> access_to(const ExternalValue& value) {
  return std::make_shared<HostFunction>(
      [read = value.read, assign = value.assign](const std::vector<Tensor>& assigned) -> std::vector<Tensor> {
        if (assigned.empty()) return {read()};
        assign(assigned[0]);
        return {};
      });
}

// Hooks add such variables in begin(), which a second session on the graph calls again.
std::string new_external_name(const Scope& scope, std::string_view name) {
  try {
    return new_variable_name(scope, name);
  } catch (const AlreadyExistsError& error) {
    throw AlreadyExistsError(std::string(error.what()) +
                             "; if a hook of an earlier session added it in begin(), use a new graph, or add it "
                             "outside begin()");
  }
}

}  // namespace

std::string new_variable_name(const Scope& scope, std::string_view name) {
  std::string full = scope.variable_prefix() + std::string(name);
  if (!scope.graph().name_taken(full)) return full;
  throw AlreadyExistsError("variable " + full + " already exists in this graph; give it another name or its own scope");
}

Variable external_variable(const Scope& scope, std::string_view name, ExternalValue value, bool trainable) {
  const std::string full_name = new_external_name(scope, name);
  const Scope root = scope.outermost(), inner = root.within(full_name);
  VariableInfo info;
  info.trainable = trainable;
  Attrs attrs = {{"dtype", value.dtype}, {"shape", value.shape}, {kProgramValueAttr, access_to(value)}};
  if (value.expected) attrs[kExpectedShapeAttr] = *value.expected;
  info.ref = root.add("VariableV2", full_name, {}, std::move(attrs)).output();
  const auto initial = value.initial ? value.initial : value.read;
  const auto read_initial = [initial](const std::vector<Tensor>&) { return std::vector<Tensor>{initial()}; };
  info.initial_value = host_function(inner, {}, {value.dtype}, read_initial, "initial_value").output();
  info.initializer = inner.add("Assign", "Assign", {info.ref, info.initial_value}, {{"validate_shape", true}});
  info.read = inner.add("Identity", "read", {info.ref}).output();
  scope.graph().add_to_collection(collections::kGlobalVariables, info);
  if (trainable) scope.graph().add_to_collection(collections::kTrainableVariables, info);
  return Variable(std::move(info));
}

void optional_program_value(const Scope& scope, std::string_view name, ExternalValue value, std::string key,
                            std::function<void(const Tensor&)> check) {
  const std::string full_name = new_variable_name(scope, name);
  Attrs attrs = {{"dtype", value.dtype},
                 {"shape", value.shape},
                 {kProgramValueAttr, access_to(value)},
                 {"always_initialized", true}};
  if (value.expected) attrs[kExpectedShapeAttr] = *value.expected;
  const Scope root = scope.outermost();
  const Operation variable = root.add("VariableV2", full_name, {}, std::move(attrs));
  const Output read = root.within(full_name).add("Identity", "read", {variable.output()}).output();
  const auto restore = [variable, check = std::move(check), dtype = value.dtype](const Scope& into,
                                                                                 const std::vector<Output>& restored) {
    const auto checked = [check](const std::vector<Tensor>& values) {
      if (check) check(values[0]);
      return values;
    };
    const Output value = host_function(into, {restored[0]}, {dtype}, checked, "checked").output();
    return into.add("Assign", "Assign", {variable.output(), value}, {{"validate_shape", true}});
  };
  if (key.empty()) key = variable.name();
  add_saveable(scope.graph(),
               {.name = key, .op = variable, .parts = {{key, read}}, .restore = restore, .optional = true});
}

bool is_external(const Operation& variable) {
  return variable.find_attr<std::shared_ptr<HostFunction>>(kProgramValueAttr) != nullptr;
}

Operation program_step(const Scope& scope, const Variable& global_step, const std::vector<Output>& inputs,
                       ProgramStep function, std::string_view name) {
  std::vector<Output> arguments{global_step.ref()};
  arguments.insert(arguments.end(), inputs.begin(), inputs.end());
  const auto call = [function = std::move(function)](const std::vector<Tensor>& values) {
    function(values[0].item<int64_t>(), {values.begin() + 1, values.end()});
    return std::vector<Tensor>();
  };
  return scope.add(kProgramStepType, name, arguments, {{"function", std::make_shared<HostFunction>(call)}});
}

bool is_program_step(const Operation& op) {
  return op.type() == kProgramStepType;
}

bool has_program_step(const Graph& graph) {
  const auto operations = graph.operations();
  return std::any_of(operations.begin(), operations.end(), is_program_step);
}

}  // namespace longhaul::ops
