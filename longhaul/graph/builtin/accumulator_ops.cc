#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

const std::vector<std::string>& any_accumulator() {
  static const auto* types = new std::vector<std::string>{"ConditionalAccumulator", "SparseConditionalAccumulator"};
  return *types;
}

const std::vector<std::string>& dense_accumulator() {
  static const auto* types = new std::vector<std::string>{"ConditionalAccumulator"};
  return *types;
}

const std::vector<std::string>& sparse_accumulator() {
  static const auto* types = new std::vector<std::string>{"SparseConditionalAccumulator"};
  return *types;
}

OpInfo resolve_accumulator(const OperationSpec& spec) {
  need_inputs(spec, 0);
  const DType dtype = need_attr<DType>(spec, "dtype");
  if (!is_floating(dtype)) refuse(spec, fmt::format("gradients must be floating-point, not {}", dtype_name(dtype)));
  find_attr<Shape>(spec, "shape");
  const auto* reduction = find_attr<std::string>(spec, "reduction_type");
  if (reduction != nullptr && *reduction != "MEAN" && *reduction != "SUM") {
    refuse(spec, fmt::format("Value for attr 'reduction_type' of \"{}\" is not in the list of allowed values: "
                             "\"MEAN\", \"SUM\"",
                             *reduction));
  }
  return resource_handle();
}

Operation accumulator_of(const OperationSpec& spec, const std::vector<std::string>& types) {
  need_resource(spec, 0, types, types.size() == 2 ? "an accumulator" : "an accumulator of type " + types.front());
  return spec.inputs[0].op();
}

Shape gradient_shape(const Operation& accumulator) {
  const auto* shape = accumulator.find_attr<Shape>("shape");
  return shape == nullptr ? Shape::unknown_rank() : *shape;
}

void need_scalar_of(const OperationSpec& spec, size_t input, DType dtype, const char* what) {
  need_dtype(spec, input, dtype);
  const Shape& shape = spec.inputs[input].shape();
  if (!shape.compatible_with(Shape{}))
    refuse(spec, fmt::format("Argument {} must be a scalar, but its shape is {}", what, shape.to_string()));
}

void need_gradient_dtype(const OperationSpec& spec, size_t input, const Operation& accumulator) {
  const DType wanted = accumulator.attr<DType>("dtype"), given = spec.inputs[input].dtype();
  if (given == wanted) return;
  refuse(spec, fmt::format("Accumulator '{}' is for gradients of {}, but {} is {}", accumulator.name(),
                           dtype_name(wanted), spec.inputs[input].name(), dtype_name(given)));
}

OpInfo resolve_apply_gradient(const OperationSpec& spec) {
  need_inputs(spec, 3);
  const Operation accumulator = accumulator_of(spec, dense_accumulator());
  need_scalar_of(spec, 1, kInt64, "local_step");
  need_gradient_dtype(spec, 2, accumulator);
  const Shape wanted = gradient_shape(accumulator), given = spec.inputs[2].shape();
  if (!given.compatible_with(wanted))
    refuse(spec, fmt::format("Shape mismatch: expected {}, got {}", wanted.to_string(), given.to_string()));
  return {{}, kSideEffect, 1};
}

OpInfo resolve_apply_rows(const OperationSpec& spec) {
  need_inputs(spec, 5);
  const Operation accumulator = accumulator_of(spec, sparse_accumulator());
  need_scalar_of(spec, 1, kInt64, "local_step");
  need_dtype(spec, 2, kInt64);
  need_gradient_dtype(spec, 3, accumulator);
  need_dtype(spec, 4, kInt64);
  find_attr<bool>(spec, "has_known_shape");
  return {{}, kSideEffect, 1};
}

void need_num_required(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_scalar_of(spec, 1, kInt32, "num_required");
}

OpInfo resolve_take_gradient(const OperationSpec& spec) {
  need_num_required(spec);
  const Operation accumulator = accumulator_of(spec, dense_accumulator());
  return {{{accumulator.attr<DType>("dtype"), gradient_shape(accumulator)}}, kTakesInput | kMayWait, 1};
}

// The rows that some gradient has, so their number is only known in a run.
Shape shape_of_rows(const Shape& table) {
  if (!table.has_rank() || table.rank() == 0) return Shape::unknown_rank();
  std::vector<int64_t> dims = table.dims();
  dims[0] = -1;
  return Shape(std::move(dims));
}

OpInfo resolve_take_rows(const OperationSpec& spec) {
  need_num_required(spec);
  const Operation accumulator = accumulator_of(spec, sparse_accumulator());
  const Shape rows = shape_of_rows(gradient_shape(accumulator));
  return {
      {{kInt64, Shape{-1}}, {accumulator.attr<DType>("dtype"), rows}, {kInt64, Shape{-1}}}, kTakesInput | kMayWait, 1};
}

OpInfo resolve_set_step(const OperationSpec& spec) {
  need_inputs(spec, 2);
  accumulator_of(spec, any_accumulator());
  need_scalar_of(spec, 1, kInt64, "new_global_step");
  return {{}, kSideEffect, 1};
}

OpInfo resolve_cancel_takes(const OperationSpec& spec) {
  need_inputs(spec, 1);
  accumulator_of(spec, any_accumulator());
  return {{}, kSideEffect, 1};
}

template <DType dtype>
OpInfo resolve_number(const OperationSpec& spec) {
  need_inputs(spec, 1);
  accumulator_of(spec, any_accumulator());
  return {{{dtype, {}}}, kPure, 1};
}

}  // namespace

ResolverTable accumulator_ops() {
  return {
      {"ConditionalAccumulator", resolve_accumulator},        {"SparseConditionalAccumulator", resolve_accumulator},
      {"AccumulatorApplyGradient", resolve_apply_gradient},   {"AccumulatorTakeGradient", resolve_take_gradient},
      {"SparseAccumulatorApplyGradient", resolve_apply_rows}, {"SparseAccumulatorTakeGradient", resolve_take_rows},
      {"AccumulatorSetGlobalStep", resolve_set_step},         {"AccumulatorNumAccumulated", resolve_number<kInt32>},
      {"AccumulatorNumDropped", resolve_number<kInt64>},      {"AccumulatorCancelTakes", resolve_cancel_takes},
  };
}

}  // namespace longhaul::builtin
