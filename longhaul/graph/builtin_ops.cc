#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "longhaul/graph/op_catalog.h"

namespace longhaul {
namespace {

using Result = OpInfo::Result;
using Resolve = OpInfo (*)(const OperationSpec&);

[[noreturn]] void refuse(const OperationSpec& spec, const std::string& why) {
  throw InvalidArgumentError(fmt::format("{} ({}): {}", spec.name, spec.type, why));
}

template <typename T>
const T& need_attr(const OperationSpec& spec, const std::string& name) {
  const auto it = spec.attrs.find(name);
  if (it == spec.attrs.end()) refuse(spec, "attr " + name + " is missing");
  const T* value = std::get_if<T>(&it->second);
  if (value == nullptr) refuse(spec, "attr " + name + " has the wrong type");
  return *value;
}

void need_inputs(const OperationSpec& spec, size_t count) {
  if (spec.inputs.size() != count) refuse(spec, fmt::format("takes {} inputs, {} given", count, spec.inputs.size()));
}

void need_variables(const OperationSpec& spec, size_t count) {
  if (spec.inputs.size() < count)
    refuse(spec, fmt::format("takes {} variables, {} inputs given", count, spec.inputs.size()));
  for (size_t i = 0; i < count; ++i) {
    if (spec.inputs[i].op().type() != "VariableV2") {
      refuse(spec, fmt::format("input {} must be a variable, not {} ({}); a Variable's ref() is one", i,
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
    refuse(spec, fmt::format("{} is {}, the value {} is {}", variable.name(), dtype_name(variable.dtype()),
                             value.name(), dtype_name(value.dtype())));
  }
  if (!variable.shape().compatible_with(value.shape())) {
    refuse(spec, fmt::format("Assign requires shapes of both tensors to match. {} is {}, the value {} is {}",
                             variable.name(), variable.shape().to_string(), value.name(), value.shape().to_string()));
  }
}

void need_dtype(const OperationSpec& spec, size_t input, DType dtype) {
  if (spec.inputs[input].dtype() != dtype) {
    refuse(spec, fmt::format("input {} must be {}, not {}", input, dtype_name(dtype),
                             dtype_name(spec.inputs[input].dtype())));
  }
}

Result like(const Output& output) {
  return {output.dtype(), output.shape()};
}

OpInfo resolve_placeholder(const OperationSpec& spec) {
  need_inputs(spec, 0);
  return {{{need_attr<DType>(spec, "dtype"), need_attr<Shape>(spec, "shape")}}, kTakesInput};
}

OpInfo resolve_placeholder_with_default(const OperationSpec& spec) {
  need_inputs(spec, 1);
  return {{{spec.inputs[0].dtype(), need_attr<Shape>(spec, "shape")}}};
}

OpInfo resolve_const(const OperationSpec& spec) {
  need_inputs(spec, 0);
  const Tensor& value = need_attr<Tensor>(spec, "value");
  return {{{value.dtype(), value.shape()}}};
}

OpInfo resolve_variable(const OperationSpec& spec) {
  need_inputs(spec, 0);
  return {{{need_attr<DType>(spec, "dtype"), need_attr<Shape>(spec, "shape")}}};
}

OpInfo resolve_assign(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_variables(spec, 1);
  need_same(spec, spec.inputs[0], spec.inputs[1]);
  return {{like(spec.inputs[0])}, kWritesVariable, 1};
}

OpInfo resolve_initialized_value(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_variables(spec, 1);
  need_same(spec, spec.inputs[0], spec.inputs[1]);
  return {{like(spec.inputs[0])}, kPure, 1};
}

OpInfo resolve_count_up_to(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_variables(spec, 1);
  need_attr<int64_t>(spec, "limit");
  return {{like(spec.inputs[0])}, kWritesVariable, 1};
}

OpInfo resolve_is_initialized(const OperationSpec& spec) {
  need_inputs(spec, 1);
  need_variables(spec, 1);
  return {{{kBool, {}}}, kPure, 1};
}

OpInfo resolve_report_uninitialized(const OperationSpec& spec) {
  need_variables(spec, spec.inputs.size());
  return {{{kString, {-1}}}, kPure, static_cast<int>(spec.inputs.size())};
}

OpInfo resolve_no_op(const OperationSpec& spec) {
  need_inputs(spec, 0);
  return {};
}

OpInfo resolve_identity(const OperationSpec& spec) {
  need_inputs(spec, 1);
  return {{like(spec.inputs[0])}};
}

OpInfo resolve_shape(const OperationSpec& spec) {
  need_inputs(spec, 1);
  const Shape& shape = spec.inputs[0].shape();
  return {{{kInt64, {shape.has_rank() ? shape.rank() : -1}}}};
}

OpInfo resolve_summary(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 0, kString);
  return {{{kString, {}}}};
}

OpInfo resolve_merge_summary(const OperationSpec& spec) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) need_dtype(spec, i, kString);
  return {{{kString, {}}}};
}

OpInfo resolve_save(const OperationSpec& spec) {
  if (spec.inputs.size() < 3) refuse(spec, "takes prefix, tensor_names, shape_and_slices and tensors");
  for (size_t i = 0; i < 3; ++i) need_dtype(spec, i, kString);
  return {{}, kSideEffect};
}

OpInfo resolve_restore(const OperationSpec& spec) {
  need_inputs(spec, 3);
  for (size_t i = 0; i < 3; ++i) need_dtype(spec, i, kString);
  OpInfo info{{}, kSideEffect};
  for (DType dtype : need_attr<std::vector<DType>>(spec, "dtypes"))
    info.outputs.push_back({dtype, Shape::unknown_rank()});
  return info;
}

// var, slots like var..., scalars..., with the gradient (like var) among them.
template <int kRefs, int kInputs, int kGradient>
OpInfo resolve_apply(const OperationSpec& spec) {
  need_inputs(spec, kInputs);
  need_variables(spec, kRefs);
  need_distinct(spec, kRefs);
  for (int i = 1; i < kRefs; ++i) need_same(spec, spec.inputs[0], spec.inputs[static_cast<size_t>(i)]);
  need_same(spec, spec.inputs[0], spec.inputs[kGradient]);
  return {{like(spec.inputs[0])}, kWritesVariable, kRefs};
}

OpInfo resolve_host_function(const OperationSpec& spec) {
  need_attr<std::shared_ptr<HostFunction>>(spec, "function");
  OpInfo info{{}, kSideEffect};
  for (DType dtype : need_attr<std::vector<DType>>(spec, "dtypes"))
    info.outputs.push_back({dtype, Shape::unknown_rank()});
  return info;
}

// The forward operation's inputs, then the gradients of its outputs; returns the gradients of the inputs numbered in
// `wrt`.
OpInfo resolve_tape_gradient(const OperationSpec& spec) {
  need_attr<std::string>(spec, "forward");
  OpInfo info;
  for (int64_t i : need_attr<std::vector<int64_t>>(spec, "wrt")) {
    if (i < 0 || static_cast<size_t>(i) >= spec.inputs.size()) refuse(spec, fmt::format("wrt names input {}", i));
    info.outputs.push_back(like(spec.inputs[static_cast<size_t>(i)]));
  }
  return info;
}

class BuiltinCatalog : public OpCatalog {
 public:
  std::optional<OpInfo> resolve(const OperationSpec& spec) const override {
    const auto it = resolvers_.find(spec.type);
    if (it == resolvers_.end()) return std::nullopt;
    return it->second(spec);
  }

 private:
  const std::map<std::string, Resolve> resolvers_ = {
      {"Placeholder", resolve_placeholder},
      {"PlaceholderWithDefault", resolve_placeholder_with_default},
      {"Const", resolve_const},
      {"VariableV2", resolve_variable},
      {"Assign", resolve_assign},
      {"AssignAdd", resolve_assign},
      {"AssignSub", resolve_assign},
      {"CountUpTo", resolve_count_up_to},
      {"InitializedValue", resolve_initialized_value},
      {"IsVariableInitialized", resolve_is_initialized},
      {"ReportUninitializedVariables", resolve_report_uninitialized},
      {"NoOp", resolve_no_op},
      {"Identity", resolve_identity},
      {"Shape", resolve_shape},
      {"ScalarSummary", resolve_summary},
      {"HistogramSummary", resolve_summary},
      {"MergeSummary", resolve_merge_summary},
      {"SaveV2", resolve_save},
      {"RestoreV2", resolve_restore},
      {"ApplyGradientDescent", resolve_apply<1, 3, 2>},
      {"ApplyMomentum", resolve_apply<2, 5, 3>},
      {"ApplyAdam", resolve_apply<3, 10, 9>},
      {"ApplyAdagrad", resolve_apply<2, 4, 3>},
      {"ApplyRMSProp", resolve_apply<3, 8, 7>},
      {"HostFunction", resolve_host_function},
      {"TapeGradient", resolve_tape_gradient},
  };
};

}  // namespace

const OpCatalog& builtin_op_catalog() {
  static const BuiltinCatalog* catalog = new BuiltinCatalog;
  return *catalog;
}

}  // namespace longhaul
