#include "longhaul/graph/builtin/resolver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace longhaul::builtin {

void refuse(const OperationSpec& spec, const std::string& why) {
  throw InvalidArgumentError(fmt::format("{} ({}): {}", spec.name, spec.type, why));
}

void need_inputs(const OperationSpec& spec, size_t count) {
  if (spec.inputs.size() != count)
    refuse(spec, fmt::format("takes {} inputs, but {} were given", count, spec.inputs.size()));
}

void need_dtype(const OperationSpec& spec, size_t input, DType dtype) {
  if (spec.inputs[input].dtype() != dtype) {
    refuse(spec, fmt::format("input {} must be {}, not {}", input, dtype_name(dtype),
                             dtype_name(spec.inputs[input].dtype())));
  }
}

void need_index(const OperationSpec& spec, size_t input) {
  const DType dtype = spec.inputs[input].dtype();
  if (dtype != kInt32 && dtype != kInt64)
    refuse(spec, fmt::format("input {} must be int32 or int64, not {}", input, dtype_name(dtype)));
}

void need_variables(const OperationSpec& spec, size_t count) {
  if (spec.inputs.size() < count)
    refuse(spec, fmt::format("takes {} variables, but {} inputs were given", count, spec.inputs.size()));
  for (size_t i = 0; i < count; ++i) {
    if (spec.inputs[i].op().type() != "VariableV2") {
      refuse(spec, fmt::format("input {} must be a variable, not {} ({}); pass a Variable's ref()", i,
                               spec.inputs[i].name(), spec.inputs[i].op().type()));
    }
  }
}

// The first `count` inputs are `count` variables: an operation locks all that it changes.
void need_distinct(const OperationSpec& spec, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    if (std::find(spec.inputs.begin(), spec.inputs.begin() + static_cast<std::ptrdiff_t>(i), spec.inputs[i]) !=
        spec.inputs.begin() + static_cast<std::ptrdiff_t>(i)) {
      refuse(spec, fmt::format("{} is given twice", spec.inputs[i].name()));
    }
  }
}

void need_same(const OperationSpec& spec, const Output& variable, const Output& value) {
  if (variable.dtype() != value.dtype()) {
    refuse(spec, fmt::format("{} is {}, but the value {} is {}", variable.name(), dtype_name(variable.dtype()),
                             value.name(), dtype_name(value.dtype())));
  }
  if (!variable.shape().compatible_with(value.shape())) {
    refuse(spec, fmt::format("Assign requires shapes of both tensors to match. {} is {}, but the value {} is {}",
                             variable.name(), variable.shape().to_string(), value.name(), value.shape().to_string()));
  }
}

void need_resource(const OperationSpec& spec, size_t input, const std::vector<std::string>& types,
                   const std::string& what) {
  if (input >= spec.inputs.size()) refuse(spec, fmt::format("input {} must be {}, but is missing", input, what));
  const Output& given = spec.inputs[input];
  if (std::find(types.begin(), types.end(), given.op().type()) == types.end()) {
    refuse(spec, fmt::format("input {} must be {}, not {} ({})", input, what, given.name(), given.op().type()));
  }
}

}  // namespace longhaul::builtin
