#include "longhaul/ops/indexed_slices.h"

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

constexpr const char* kSum = "UnsortedSegmentSum";

}  // namespace

Output indexed_slices(const Scope& scope, const Output& values, const Output& indices, int64_t num_rows,
                      std::string_view name) {
  const Output count = constant(scope, num_rows, "num_segments");
  return scope.add(kSum, name, {values, indices, count}).output();
}

std::optional<IndexedSlices> indexed_slices_of(const Output& gradient) {
  if (!gradient.valid() || gradient.op().type() != kSum) return std::nullopt;
  const std::vector<Output>& inputs = gradient.op().inputs();
  return IndexedSlices{.values = inputs[0], .indices = inputs[1], .num_rows = inputs[2]};
}

Output with_values(const Scope& scope, const IndexedSlices& slices, const Output& values, std::string_view name) {
  return scope.add(kSum, name, {values, slices.indices, slices.num_rows}).output();
}

Output checked_sum(const Scope& scope, const IndexedSlices& slices) {
  const std::vector<Output> inputs = {slices.values, slices.indices, slices.num_rows};
  return scope.add(kSum, kSum, inputs, {{"_refuse_negative", true}}).output();
}

Output join_slices(const Scope& scope, const std::vector<Output>& gradients) {
  std::vector<Output> values, indices;
  Output num_rows;
  for (const Output& gradient : gradients) {
    const std::optional<IndexedSlices> slices = indexed_slices_of(gradient);
    if (!slices) return {};
    values.push_back(slices->values);
    indices.push_back(slices->indices);
    num_rows = slices->num_rows;
  }
  if (values.empty()) return {};
  const IndexedSlices all{.values = {}, .indices = concat(scope, indices, 0), .num_rows = num_rows};
  return with_values(scope, all, concat(scope, values, 0));
}

}  // namespace longhaul::ops
