#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// One size may be -1, which is then inferred.
Output reshape(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name = "reshape");
// `shape`: a 1-D int64 tensor, as from ops::shape.
Output reshape(const Scope& scope, const Output& x, const Output& shape, std::string_view name = "reshape");
// Merges the dimensions start_dim to end_dim (inclusive) into one.
Output flatten(const Scope& scope, const Output& x, int64_t start_dim = 1, int64_t end_dim = -1,
               std::string_view name = "flatten");
Output squeeze(const Scope& scope, const Output& x, int64_t dim, std::string_view name = "squeeze");
Output unsqueeze(const Scope& scope, const Output& x, int64_t dim, std::string_view name = "unsqueeze");
// -1: unchanged.
Output expand(const Scope& scope, const Output& x, std::vector<int64_t> shape, std::string_view name = "expand");

Output transpose(const Scope& scope, const Output& x, int64_t dim0, int64_t dim1, std::string_view name = "transpose");
Output permute(const Scope& scope, const Output& x, std::vector<int64_t> dims, std::string_view name = "permute");

Output concat(const Scope& scope, const std::vector<Output>& parts, int64_t dim, std::string_view name = "concat");
Output stack(const Scope& scope, const std::vector<Output>& parts, int64_t dim = 0, std::string_view name = "stack");
// Parts of these sizes along `dim`. The sizes must add up to the size of `dim`.
std::vector<Output> split(const Scope& scope, const Output& x, std::vector<int64_t> sizes, int64_t dim = 0,
                          std::string_view name = "split");
// The elements start, start + step, ... before `end` along `dim`; without an `end`, up to the last. Negative numbers
// count from the end.
Output slice(const Scope& scope, const Output& x, int64_t dim, int64_t start, std::optional<int64_t> end = {},
             int64_t step = 1, std::string_view name = "slice");
// The elements at the 1-D int64 `indices`, along `dim`.
Output index_select(const Scope& scope, const Output& x, int64_t dim, const Output& indices,
                    std::string_view name = "index_select");
// For each place in `indices`, which has x's rank, the element of x at that index along `dim`.
Output gather(const Scope& scope, const Output& x, int64_t dim, const Output& indices,
              std::string_view name = "gather");

// a where the bool condition is true, else b; all three are broadcast.
Output where(const Scope& scope, const Output& condition, const Output& a, const Output& b,
             std::string_view name = "where");

}  // namespace longhaul::ops
