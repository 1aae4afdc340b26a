#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

// A tensor that persists across runs and is trained, saved and restored. A Variable is a handle and may be copied. As
// an Output, it is the variable's value.
class Variable {
 public:
  Variable() = default;
  explicit Variable(VariableInfo info) : info_(std::move(info)) {}

  const std::string& name() const { return info_.name(); }
  DType dtype() const { return info_.ref.dtype(); }
  const Shape& shape() const { return info_.ref.shape(); }
  Output ref() const { return info_.ref; }
  Operation initializer() const { return info_.initializer; }
  Output initial_value() const { return info_.initial_value; }
  const VariableInfo& info() const { return info_; }

  // The value at the start of the run; `w/read` in the graph. After an assignment in the same run use ops::read_value.
  operator Output() const { return info_.read; }

 private:
  VariableInfo info_;
};

struct VariableOptions {
  bool trainable = true;
  // The variable's collection. A local variable is neither saved nor restored.
  std::string collection = collections::kGlobalVariables;
  std::optional<SaveSliceInfo> slice{};  // its part of a larger variable (ops::partitioned_variable)
  // false: the initial value's shape may be unknown, and may differ between initialisations.
  bool validate_shape = true;
};

namespace ops {

// A tensor that runs must feed. -1 in the shape: any size.
Output placeholder(const Scope& scope, DType dtype, Shape shape = Shape::unknown_rank(),
                   std::string_view name = "Placeholder");
Output placeholder_with_default(const Scope& scope, const Output& value, Shape shape,
                                std::string_view name = "PlaceholderWithDefault");

Output constant(const Scope& scope, Tensor value, std::string_view name = "Const");
template <typename T>
  requires std::is_arithmetic_v<T>
Output constant(const Scope& scope, T value, std::string_view name = "Const") {
  return constant(scope, Tensor::scalar(value), name);
}

// A variable with the dtype and shape of its initial value, which is computed when the initializer runs. Its name is
// scope.variable_prefix() followed by `name`. The initial value may depend on other variables. If one of these is not
// initialised yet, its initial value is used instead (initialized_value), so initializers can run in any order, or in
// one run. AlreadyExistsError: the name is taken in this scope. InvalidArgumentError: the shape is not fully defined.
Variable variable(const Scope& scope, std::string_view name, const Output& initial_value,
                  const VariableOptions& options = {});
Variable variable(const Scope& scope, std::string_view name, Tensor initial_value, const VariableOptions& options = {});
Variable local_variable(const Scope& scope, std::string_view name, const Output& initial_value);

// The value at this point of the run: after the scope's control dependencies.
Output read_value(const Scope& scope, const Variable& variable, std::string_view name = "read");

// The variable's value if it has one, else its initial value.
Output initialized_value(const Scope& scope, const VariableInfo& variable, std::string_view name = "initialized_value");

// These set, add and subtract. The result is the new value.
Output assign(const Scope& scope, const Variable& variable, const Output& value, std::string_view name = "Assign");
Output assign_add(const Scope& scope, const Variable& variable, const Output& value,
                  std::string_view name = "AssignAdd");
Output assign_sub(const Scope& scope, const Variable& variable, const Output& value,
                  std::string_view name = "AssignSub");
// Adds one, and returns the previous value. OutOfRangeError at the limit.
Output count_up_to(const Scope& scope, const Variable& variable, int64_t limit, std::string_view name = "CountUpTo");

Output identity(const Scope& scope, const Output& value, std::string_view name = "Identity");
Output shape(const Scope& scope, const Output& value, std::string_view name = "Shape");  // 1-D int64
Operation no_op(const Scope& scope, std::string_view name = "NoOp");
// An operation that completes when all of `operations` have completed.
Operation group(const Scope& scope, const std::vector<Operation>& operations, std::string_view name = "group_deps");

// The program's own code as an operation. The thread that runs the step calls it with the inputs' values.
Operation host_function(const Scope& scope, const std::vector<Output>& inputs, std::vector<DType> results,
                        HostFunction function, std::string_view name = "HostFunction");

std::vector<VariableInfo> global_variables(const Graph& graph);
std::vector<VariableInfo> local_variables(const Graph& graph);
std::vector<VariableInfo> trainable_variables(const Graph& graph);

Operation variables_initializer(const Scope& scope, const std::vector<VariableInfo>& variables,
                                std::string_view name = "init");
Operation global_variables_initializer(const Scope& scope);
Operation local_variables_initializer(const Scope& scope);
Output is_variable_initialized(const Scope& scope, const Variable& variable,
                               std::string_view name = "IsVariableInitialized");
// The names of those variables that are not initialised, as a 1-D string tensor.
Output report_uninitialized_variables(const Scope& scope, const std::vector<VariableInfo>& variables,
                                      std::string_view name = "report_uninitialized_variables");

// The graph's step counter: a scalar int64 variable named "global_step", not trainable, 0 at the start. Only variable
// scopes prefix its name ("model/global_step"). A graph has only one, whatever its name. create_global_step:
// AlreadyExistsError "already exists". get_global_step: nullopt if there is none; InvalidArgumentError "does not have
// integer type" or "not scalar" if it is unsuitable. global_step (get_or_create): returns the existing one, or else a
// new one.
Variable create_global_step(const Scope& scope);
std::optional<Variable> get_global_step(const Graph& graph);
Variable global_step(const Scope& scope);

}  // namespace ops
}  // namespace longhaul
