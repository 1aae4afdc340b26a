#include <fmt/format.h>

#include "longhaul/graph/builtin/resolver.h"

namespace longhaul::builtin {
namespace {

// The value of a constant; nullptr for what is known only when the graph runs.
const Tensor* constant_value(const Output& output) {
  return output.op().type() == "Const" ? output.op().find_attr<Tensor>("value") : nullptr;
}

void need_rows(const OperationSpec& spec, const Shape& shape) {
  if (shape.has_rank() && shape.rank() == 0) refuse(spec, "a scalar has no rows");
}

// `count` rows like those of `shape`.
Shape with_rows(const Shape& shape, std::vector<int64_t> count) {
  if (!shape.has_rank()) return Shape::unknown_rank();
  count.insert(count.end(), shape.dims().begin() + 1, shape.dims().end());
  return Shape(std::move(count));
}

std::vector<int64_t> integers(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    values.push_back(tensor.dtype() == kInt32 ? static_cast<const int32_t*>(tensor.data())[i]
                                              : static_cast<const int64_t*>(tensor.data())[i]);
  }
  return values;
}

OpInfo resolve_random_shuffle(const OperationSpec& spec) {
  need_inputs(spec, 1);
  return {{like(spec.inputs[0])}, kRandom};
}

OpInfo resolve_gather(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_index(spec, 1);
  need_index(spec, 2);
  need_rows(spec, spec.inputs[0].shape());
  const Tensor* axis = constant_value(spec.inputs[2]);
  if (axis != nullptr && axis->item<int64_t>() != 0) refuse(spec, "rows can be gathered along axis 0 only");
  const int64_t* batch_dims = find_attr<int64_t>(spec, "batch_dims");
  if (batch_dims != nullptr && *batch_dims != 0) refuse(spec, "batch_dims must be 0");
  const Shape& indices = spec.inputs[1].shape();
  const Shape result = indices.has_rank() ? with_rows(spec.inputs[0].shape(), indices.dims()) : Shape::unknown_rank();
  return {{{spec.inputs[0].dtype(), result}}};
}

// Rows, a row's number for each, and how many rows the result has.
OpInfo resolve_unsorted_segment_sum(const OperationSpec& spec) {
  need_inputs(spec, 3);
  need_index(spec, 1);
  need_index(spec, 2);
  const Shape &rows = spec.inputs[0].shape(), &numbers = spec.inputs[1].shape();
  if (!is_floating(spec.inputs[0].dtype())) refuse(spec, "only rows of floating-point numbers can be summed");
  need_rows(spec, rows);
  if (!numbers.compatible_with({-1})) refuse(spec, "segment_ids must be a vector, not " + numbers.to_string());
  if (rows.has_rank() && numbers.has_rank() && !Shape{rows.dim(0)}.compatible_with(numbers))
    refuse(spec, fmt::format("there are {} segment_ids for {} rows", numbers.dim(0), rows.dim(0)));
  const Tensor* count = constant_value(spec.inputs[2]);
  if (count != nullptr && count->num_elements() != 1) refuse(spec, "num_segments must be a scalar");
  return {{{spec.inputs[0].dtype(), with_rows(rows, {count == nullptr ? -1 : integers(*count)[0]})}}};
}

OpInfo resolve_boolean_mask(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_dtype(spec, 1, kBool);
  const Shape &tensor = spec.inputs[0].shape(), &mask = spec.inputs[1].shape();
  need_rows(spec, tensor);
  if (!mask.compatible_with({-1})) refuse(spec, "the mask must be a vector, not " + mask.to_string());
  if (tensor.has_rank() && mask.has_rank() && !Shape{tensor.dim(0)}.compatible_with(mask)) {
    refuse(spec, fmt::format("the mask has shape {}, but there are {} rows", mask.to_string(), tensor.dim(0)));
  }
  return {{{spec.inputs[0].dtype(), with_rows(tensor, {-1})}}};
}

// One size may be -1: what is left over.
Shape reshaped(const OperationSpec& spec, const Shape& from, std::vector<int64_t> sizes) {
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < -1) refuse(spec, fmt::format("a size must be at least -1, not {}", sizes[i]));
    if (sizes[i] == -1 && open >= 0) refuse(spec, "only one size can be -1");
    if (sizes[i] == -1) {
      open = static_cast<int64_t>(i);
    } else if (__builtin_mul_overflow(known, sizes[i], &known)) {
      refuse(spec, "the new shape does not fit in memory");
    }
  }
  const int64_t count = from.num_elements();
  if (count >= 0 && open >= 0 && known > 0 && count % known == 0) sizes[static_cast<size_t>(open)] = count / known;
  const Shape result(std::move(sizes));
  if (count >= 0 && result.num_elements() != count) {
    refuse(spec, fmt::format("cannot reshape {} to {}", from.to_string(), result.to_string()));
  }
  return result;
}

OpInfo resolve_reshape(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_index(spec, 1);
  const Shape& sizes = spec.inputs[1].shape();
  if (!sizes.compatible_with({-1})) refuse(spec, "the shape must be a vector, not " + sizes.to_string());
  Shape result = Shape::unknown_rank();
  if (const Tensor* value = constant_value(spec.inputs[1])) {
    result = reshaped(spec, spec.inputs[0].shape(), integers(*value));
  } else if (sizes.fully_defined()) {
    result = Shape(std::vector<int64_t>(static_cast<size_t>(sizes.dim(0)), -1));
  }
  return {{{spec.inputs[0].dtype(), result}}};
}

OpInfo resolve_expand_dims(const OperationSpec& spec) {
  need_inputs(spec, 2);
  need_index(spec, 1);
  const Shape& shape = spec.inputs[0].shape();
  const Tensor* dim = constant_value(spec.inputs[1]);
  if (!shape.has_rank()) return {{{spec.inputs[0].dtype(), Shape::unknown_rank()}}};
  std::vector<int64_t> sizes = shape.dims();
  if (dim == nullptr) return {{{spec.inputs[0].dtype(), Shape(std::vector<int64_t>(sizes.size() + 1, -1))}}};
  const int64_t rank = shape.rank(), given = dim->item<int64_t>();
  if (given < -rank - 1 || given > rank)
    refuse(spec, fmt::format("dim {} is out of range for a shape with {} dimensions", given, rank));
  sizes.insert(sizes.begin() + (given < 0 ? given + rank + 1 : given), 1);
  return {{{spec.inputs[0].dtype(), Shape(std::move(sizes))}}};
}

Shape merged(const OperationSpec& spec, const Shape& a, const Shape& b) {
  if (!a.compatible_with(b)) refuse(spec, fmt::format("the shapes {} and {} differ", a.to_string(), b.to_string()));
  if (!a.has_rank()) return b;
  if (!b.has_rank()) return a;
  std::vector<int64_t> dims = a.dims();
  for (int i = 0; i < b.rank(); ++i) {
    if (dims[static_cast<size_t>(i)] < 0) dims[static_cast<size_t>(i)] = b.dim(i);
  }
  return Shape(std::move(dims));
}

OpInfo resolve_pack(const OperationSpec& spec) {
  if (spec.inputs.empty()) refuse(spec, "takes at least one tensor");
  Shape shape = spec.inputs[0].shape();
  for (size_t i = 1; i < spec.inputs.size(); ++i) {
    need_dtype(spec, i, spec.inputs[0].dtype());
    shape = merged(spec, shape, spec.inputs[i].shape());
  }
  if (!shape.has_rank()) return {{{spec.inputs[0].dtype(), shape}}};
  const int64_t* axis = find_attr<int64_t>(spec, "axis");
  const int64_t at = axis == nullptr ? 0 : *axis < 0 ? *axis + shape.rank() + 1 : *axis;
  if (at < 0 || at > shape.rank()) refuse(spec, fmt::format("there is no axis {} to pack along", *axis));
  std::vector<int64_t> dims = shape.dims();
  dims.insert(dims.begin() + at, static_cast<int64_t>(spec.inputs.size()));
  return {{{spec.inputs[0].dtype(), Shape(std::move(dims))}}};
}

}  // namespace

ResolverTable array_ops() {
  return {
      {"RandomShuffle", resolve_random_shuffle},
      {"GatherV2", resolve_gather},
      {"BooleanMask", resolve_boolean_mask},
      {"Reshape", resolve_reshape},
      {"ExpandDims", resolve_expand_dims},
      {"Pack", resolve_pack},
      {"UnsortedSegmentSum", resolve_unsorted_segment_sum},
  };
}

}  // namespace longhaul::builtin
