#include "longhaul/host/queues/queue_spec.h"

#include <fmt/ranges.h>

#include <string_view>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

std::vector<Shape> shapes_to_check(const QueueSignature& signature, bool by_priority) {
  if (!signature.shapes.empty() || !by_priority) return signature.shapes;
  std::vector<Shape> shapes(signature.dtypes.size(), Shape::unknown_rank());
  if (!shapes.empty()) shapes[0] = Shape{};
  return shapes;
}

std::string described(const QueueSignature& signature) {
  std::vector<std::string_view> dtypes;
  for (const DType dtype : signature.dtypes) dtypes.push_back(dtype_name(dtype));
  std::vector<std::string> shapes;
  for (const Shape& shape : signature.shapes) shapes.push_back(shape.to_string());
  return fmt::format("[{}] of {}", fmt::join(dtypes, ", "),
                     shapes.empty() ? "undeclared shapes" : fmt::format("shapes [{}]", fmt::join(shapes, ", ")));
}

// [3] for [?, 3].
Shape shape_of_row(const Shape& rows) {
  return Shape(std::vector<int64_t>(rows.dims().begin() + 1, rows.dims().end()));
}

}  // namespace

ElementCheck::ElementCheck(const QueueSpec& spec, bool by_priority)
    : spec_(spec), shapes_(shapes_to_check(spec.signature, by_priority)) {}

void ElementCheck::check_handle(const Operation& handle) const {
  const QueueSignature wanted = queue_signature(handle);
  const auto& [dtypes, shapes] = spec_.signature;
  if (wanted.dtypes == dtypes && wanted.shapes == shapes) return;
  throw InvalidArgumentError(
      fmt::format("{}: Shared queue '{}' has elements of {}, but this operation declares {}. Use another shared_name "
                  "for one of them",
                  handle.name(), spec_.name, described(spec_.signature), described(wanted)));
}

void ElementCheck::check(std::span<const Tensor> element) const {
  check_count(element.size());
  for (size_t i = 0; i < element.size(); ++i) check_component(i, element[i].dtype(), element[i].shape());
}

void ElementCheck::check_count(size_t components) const {
  const size_t expected = spec_.signature.dtypes.size();
  if (components == expected) return;
  throw InvalidArgumentError(fmt::format("{} '{}': Wrong number of components in tuple. Expected {}, got {}",
                                         spec_.kind, spec_.name, expected, components));
}

void ElementCheck::check_component(size_t i, DType dtype, const Shape& shape) const {
  const DType expected = spec_.signature.dtypes[i];
  if (dtype != expected) {
    throw InvalidArgumentError(fmt::format("{} '{}': Type mismatch in tuple component {}. Expected {}, got {}",
                                           spec_.kind, spec_.name, i, dtype_name(expected), dtype_name(dtype)));
  }
  if (!shapes_.empty() && !shape.compatible_with(shapes_[i])) {
    throw InvalidArgumentError(fmt::format("{} '{}': Shape mismatch in tuple component {}. Expected {}, got {}",
                                           spec_.kind, spec_.name, i, shapes_[i].to_string(), shape.to_string()));
  }
}

void ElementCheck::check_rows(std::span<const Tensor> components) const {
  check_count(components.size());
  for (size_t i = 0; i < components.size(); ++i) {
    if (components[i].shape().rank() == 0) {
      throw InvalidArgumentError(fmt::format("{} '{}': component {} is a scalar; it must have a row for each element",
                                             spec_.kind, spec_.name, i));
    }
    if (components[i].shape().dim(0) != components[0].shape().dim(0)) {
      throw InvalidArgumentError(fmt::format(
          "{} '{}': All input tensors must have the same size in the 0th dimension. Component {} has {}, and should "
          "have {}",
          spec_.kind, spec_.name, i, components[i].shape().dim(0), components[0].shape().dim(0)));
    }
    check_component(i, components[i].dtype(), shape_of_row(components[i].shape()));
  }
}

}  // namespace longhaul
