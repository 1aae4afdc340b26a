#include "longhaul/ops/partitioned_variable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace longhaul {
namespace {

std::vector<SaveSliceInfo> cut(const std::string& name, const Shape& shape, const Partitioning& partitioning) {
  const int64_t parts = partitioning.parts;
  if (!shape.fully_defined() || partitioning.axis < 0 || partitioning.axis >= shape.rank() || parts < 1 ||
      parts > shape.dim(partitioning.axis)) {
    throw InvalidArgumentError(fmt::format("variable {} of shape {} cannot be split into {} parts along axis {}", name,
                                           shape.to_string(), parts, partitioning.axis));
  }
  const auto axis = static_cast<size_t>(partitioning.axis);
  const int64_t size = shape.dim(partitioning.axis);
  std::vector<SaveSliceInfo> slices;
  int64_t begin = 0;
  for (int64_t i = 0; i < parts; ++i) {
    SaveSliceInfo slice{name, shape.dims(), std::vector<int64_t>(shape.dims().size()), shape.dims()};
    slice.offset[axis] = begin;
    slice.shape[axis] = size / parts + (i < size % parts ? 1 : 0);
    begin += slice.shape[axis];
    slices.push_back(std::move(slice));
  }
  return slices;
}

int64_t product(const std::vector<int64_t>& dims, size_t begin, size_t end) {
  int64_t result = 1;
  for (size_t d = begin; d < end; ++d) result *= dims[d];
  return result;
}

// The bytes of one slice lie in `blocks` runs of elements, one for each index before the axis.
Tensor part_of(const Tensor& whole, const SaveSliceInfo& slice, size_t axis) {
  Tensor part(whole.dtype(), Shape(slice.shape));
  const size_t rank = slice.shape.size();
  const int64_t blocks = product(slice.shape, 0, axis), inner = product(slice.shape, axis + 1, rank);
  const int64_t run = slice.shape[axis] * inner, stride = slice.full_shape[axis] * inner;
  for (int64_t block = 0; block < blocks; ++block) {
    const int64_t from = block * stride + slice.offset[axis] * inner, to = block * run;
    if (whole.dtype() == kString) {
      std::copy_n(whole.flat<std::string>().begin() + from, run, part.mutable_flat<std::string>().begin() + to);
    } else {
      const size_t size = dtype_size(whole.dtype());
      std::memcpy(static_cast<char*>(part.mutable_data()) + static_cast<size_t>(to) * size,
                  static_cast<const char*>(whole.data()) + static_cast<size_t>(from) * size,
                  static_cast<size_t>(run) * size);
    }
  }
  return part;
}

}  // namespace

PartitionedVariable::PartitionedVariable(std::vector<Variable> parts) : parts_(std::move(parts)) {
  if (parts_.empty()) throw InvalidArgumentError("a partitioned variable must have at least one part");
  for (const Variable& part : parts_) {
    if (!part.info().slice) throw InvalidArgumentError("Slices must all be slices: " + part.name());
    if (part.info().slice->full_name != name()) {
      throw InvalidArgumentError(
          fmt::format("Slices must all be from the same tensor: {} != {}", name(), part.info().slice->full_name));
    }
  }
}

namespace ops {

PartitionedVariable partitioned_variable(const Scope& scope, std::string_view name, const Shape& shape,
                                         const Partitioning& partitioning, const PartInitializer& initial_value,
                                         const VariableOptions& options) {
  const Scope inner = scope.within(name);
  const std::vector<SaveSliceInfo> slices = cut(scope.variable_prefix() + std::string(name), shape, partitioning);
  std::vector<Variable> parts;
  for (size_t i = 0; i < slices.size(); ++i) {
    const std::string part = fmt::format("part_{}", i);
    const Output value = initial_value(inner.within(part), slices[i]);
    if (value.shape() != Shape(slices[i].shape)) {
      throw InvalidArgumentError(fmt::format("{} of {} is {}, but its initial value is {}", part, slices[i].full_name,
                                             Shape(slices[i].shape).to_string(), value.shape().to_string()));
    }
    VariableOptions part_options = options;
    part_options.slice = slices[i];
    parts.push_back(variable(inner, part, value, part_options));
  }
  return PartitionedVariable(std::move(parts));
}

PartitionedVariable partitioned_variable(const Scope& scope, std::string_view name, const Tensor& initial_value,
                                         const Partitioning& partitioning, const VariableOptions& options) {
  const auto constant_part = [&](const Scope& at, const SaveSliceInfo& slice) {
    return constant(at, part_of(initial_value, slice, static_cast<size_t>(partitioning.axis)), "initial_value");
  };
  return partitioned_variable(scope, name, initial_value.shape(), partitioning, constant_part, options);
}

}  // namespace ops
}  // namespace longhaul
