#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

// For input pipelines: operations on tensors of any dtype, including strings, that run without libtorch. They have no
// gradients; models use array_ops.h.
namespace longhaul::ops {

// The rows (along the first dimension) in a random order, a new one each time. `seed`, the graph's seed
// (Graph::set_seed) and the operation's name determine the orders. If both seeds are 0, the orders differ in each
// session.
Output random_shuffle(const Scope& scope, const Output& x, int64_t seed = 0, std::string_view name = "RandomShuffle");

// The rows at the int32 or int64 `indices`; a scalar selects one row and drops the dimension. InvalidArgumentError:
// there is no such row.
Output gather_rows(const Scope& scope, const Output& x, const Output& indices, std::string_view name = "GatherV2");
// The rows for which `mask` is true, a bool vector with one element per row of x.
Output mask_rows(const Scope& scope, const Output& x, const Output& mask, std::string_view name = "BooleanMask");

// Adds a dimension of size 1 at `dim`; a negative number counts from the end.
Output expand_dims(const Scope& scope, const Output& x, int64_t dim, std::string_view name = "ExpandDims");
// The same elements in another shape. One size may be -1, which is then inferred.
Output reshape_any(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name = "Reshape");
// Joins tensors of the same shape along a new dimension, which is `axis` of the result (-1: the last).
Output pack(const Scope& scope, const std::vector<Output>& parts, int64_t axis = 0, std::string_view name = "Pack");

}  // namespace longhaul::ops
