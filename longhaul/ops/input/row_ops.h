#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

// For input pipelines: operations on tensors of any dtype, strings as well, that run without libtorch. Models use
// array_ops.h; these have no gradients.
namespace longhaul::ops {

// The rows (along the first dimension) in a random order, a new one each time. `seed`: with the graph's seed
// (Graph::set_seed) and the operation's name it decides the orders; if both are 0, each session has others.
Output random_shuffle(const Scope& scope, const Output& x, int64_t seed = 0, std::string_view name = "RandomShuffle");

// The rows that int32 or int64 `indices` name; a scalar gives one row, without its dimension. InvalidArgumentError:
// there is no such row.
Output gather_rows(const Scope& scope, const Output& x, const Output& indices, std::string_view name = "GatherV2");
// The rows where the bool vector `mask`, as long as x, is true.
Output mask_rows(const Scope& scope, const Output& x, const Output& mask, std::string_view name = "BooleanMask");

// A new dimension of size 1 at `dim`; negative ones count from the end.
Output expand_dims(const Scope& scope, const Output& x, int64_t dim, std::string_view name = "ExpandDims");
// Another shape; one size may be -1: what is left over.
Output reshape_any(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name = "Reshape");
// Tensors of one shape joined along a new dimension, `axis` of the result (-1: its last).
Output pack(const Scope& scope, const std::vector<Output>& parts, int64_t axis = 0, std::string_view name = "Pack");

}  // namespace longhaul::ops
