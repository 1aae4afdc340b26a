#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

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

// The reports of several tasks, in the order of the attr `names`, which has all that may be in them.
OpInfo resolve_join_reports(const OperationSpec& spec) {
  for (size_t i = 0; i < spec.inputs.size(); ++i) need_dtype(spec, i, kString);
  need_attr<std::vector<std::string>>(spec, "names");
  return {{{kString, {-1}}}};
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

OpInfo resolve_string_join(const OperationSpec& spec) {
  if (spec.inputs.empty()) refuse(spec, "takes strings to join");
  for (size_t i = 0; i < spec.inputs.size(); ++i) need_dtype(spec, i, kString);
  need_attr<std::string>(spec, "separator");
  return {{{kString, {}}}};
}

// The prefix of a shard's own bundle: the common one, the shard, and how many there are.
OpInfo resolve_sharded_filename(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_dtype(spec, 0, kString);
  need_dtype(spec, 1, kInt32);
  need_dtype(spec, 2, kInt32);
  return {{{kString, {}}}};
}

OpInfo resolve_merge_checkpoints(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 0, kString);
  need_dtype(spec, 1, kString);
  return {{}, kSideEffect};
}

}  // namespace

ResolverTable state_ops() {
  return {
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
      {"_JoinReports", resolve_join_reports},
      {"NoOp", resolve_no_op},
      {"Identity", resolve_identity},
      {"Shape", resolve_shape},
      {"SaveV2", resolve_save},
      {"RestoreV2", resolve_restore},
      {"StringJoin", resolve_string_join},
      {"ShardedFilename", resolve_sharded_filename},
      {"MergeV2Checkpoints", resolve_merge_checkpoints},
  };
}

}  // namespace longhaul::builtin
