#pragma once

#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// Adds operations that compute the gradients of the sum of `ys` with respect to each of `xs`; an invalid Output if no
// path of differentiable operations leads from that x to a y. `grad_ys` are the gradients of the ys themselves; a
// missing or invalid one means all ones. An x may be a variable: then all of its reads count.
//
// Only operations between xs and ys are visited, and no unneeded gradient is computed. An operator with a registered
// derivative (docs/ops.md) contributes the operators of a hand-written backward pass; any other one becomes a
// TapeGradient operation. Integers, comparisons, assignments and the program's own functions pass no gradient on.
//
// Broadcasting is undone according to the static shapes: a size that is unknown both in the operand and at the same
// place in the result counts as the same size.
//
// The gradient of a table that embedding() looks up with `sparse_gradient` is a sum of rows (ops/indexed_slices.h).
// Several of these are joined; added to any other gradient, they become a dense tensor.
//
// InvalidArgumentError: a y is not a floating-point tensor, or a grad_y does not fit. UnimplementedError: the path
// leads through an operator that draws random numbers in a way that cannot be repeated.
std::vector<Output> gradients(const Scope& scope, const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys = {});

// The same value, which gradients treat as a constant.
Output stop_gradient(const Scope& scope, const Output& value, std::string_view name = "StopGradient");

}  // namespace longhaul::ops
