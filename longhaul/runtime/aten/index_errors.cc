#include "longhaul/runtime/aten/index_errors.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>

namespace longhaul {
namespace {

std::optional<Lookup> lookup_of(const std::string& type, const std::vector<c10::IValue>& arguments) {
  const bool is_embedding = type == "aten::embedding";
  const size_t indices = is_embedding ? 1 : 2;
  if (!is_embedding && type != "aten::index_select") return std::nullopt;
  if (arguments.size() <= indices || !arguments[0].isTensor() || !arguments[indices].isTensor()) return std::nullopt;
  Lookup lookup{arguments[0].toTensor(), arguments[indices].toTensor()};
  if (!lookup.table.defined() || !lookup.indices.defined() || lookup.table.dim() == 0) return std::nullopt;
  if (!lookup.indices.is_cpu()) return std::nullopt;  // after an error of a device, it may not answer
  if (!is_embedding) lookup.dim = at::maybe_wrap_dim(arguments[1].toInt(), lookup.table.dim());
  return lookup;
}

std::string position_text(int64_t place, at::IntArrayRef sizes) {
  std::vector<int64_t> position(sizes.size());
  for (size_t i = sizes.size(); i-- > 0; place /= sizes[i]) position[i] = place % sizes[i];
  if (position.size() == 1) return std::to_string(position[0]);
  return fmt::format("[{}]", fmt::join(position, ","));
}

std::string extent_text(const Lookup& lookup, int64_t size) {
  if (lookup.is_of_classes) return fmt::format("there are {} classes", size);
  if (lookup.dim == 0) return fmt::format("the table has {} row{}", size, size == 1 ? "" : "s");
  return fmt::format("dimension {} has size {}", lookup.dim, size);
}

}  // namespace

std::string index_error_text(const std::string& type, const std::vector<c10::IValue>& arguments) {
  const std::optional<Lookup> lookup = lookup_of(type, arguments);
  return lookup ? index_error_text(*lookup) : "";
}

std::string index_error_text(const Lookup& lookup) {
  const int64_t size = lookup.table.size(lookup.dim);
  const at::Tensor indices = lookup.indices.to(at::kLong).contiguous();
  const int64_t* values = indices.data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i) {
    if ((values[i] >= 0 && values[i] < size) || values[i] == lookup.ignored) continue;
    return fmt::format("{} {} at position {} is out of range: {}", lookup.is_of_classes ? "label" : "index", values[i],
                       position_text(i, lookup.indices.sizes()), extent_text(lookup, size));
  }
  return "";
}

}  // namespace longhaul
