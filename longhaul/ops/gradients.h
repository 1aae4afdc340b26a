#pragma once

#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// Adds operations that compute the gradients of the sum of `ys` with respect to each of `xs`; the Output is invalid if
// no path of differentiable operations leads from that x to a y. `grad_ys` are the gradients with respect to the ys; a
// missing or invalid one means all ones. An x may be a variable; all of its reads then count.
//
// Only operations between xs and ys are visited, and no unneeded gradient is computed. An operator with a registered
// derivative (docs/ops.md) contributes the operators of a hand-written backward pass; any other operator becomes a
// TapeGradient operation. Integers, comparisons, assignments and the program's own functions pass no gradient on.
//
// Broadcasting is undone according to the static shapes. If a size is unknown both in the operand and at the same place
// in the result, the two sizes are assumed to be equal.
//
// The gradient of a table that embedding() looks up with `sparse_gradient` is a sum of rows (ops/indexed_slices.h).
// Several such gradients are joined. Added to any other gradient, they become a dense tensor.
//
// InvalidArgumentError: a y is not a floating-point tensor, or a grad_y does not fit. UnimplementedError: the path
// leads through an operator that draws random numbers in a way that cannot be repeated.
std::vector<Output> gradients(const Scope& scope, const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys = {});

// The same value, but gradients treat it as a constant.
Output stop_gradient(const Scope& scope, const Output& value, std::string_view name = "StopGradient");

}  // namespace longhaul::ops
