#pragma once

#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// Adds operations that compute the gradients of the sum of `ys` with respect to each of `xs`; an invalid Output where
// no path of differentiable operations leads from that x to a y. `grad_ys` are the gradients of the ys themselves;
// where one is missing or not valid it is all ones. An x may be a variable: then all of its reads count.
//
// Only what lies between xs and ys is walked, and no gradient is computed that nobody asked for. An operator whose
// derivative is registered (docs/ops.md) contributes the operators that a backward pass written by hand has; any other
// one becomes a TapeGradient operation. Integers, comparisons, assignments and the program's own functions pass no
// gradient on.
//
// Broadcasting is undone by what the static shapes say: a size that is unknown in the operand and in the result at the
// same place counts as the same size.
//
// Of a table that embedding() looks up with `sparse_gradient` it is a sum of rows (ops/indexed_slices.h); several of
// these are joined, and added to any other gradient they are a tensor like that.
//
// InvalidArgumentError: a y is not a floating-point tensor, or a grad_y does not fit. UnimplementedError: the path
// leads through an operator that draws random numbers in a way that cannot be repeated.
std::vector<Output> gradients(const Scope& scope, const std::vector<Output>& ys, const std::vector<Output>& xs,
                              const std::vector<Output>& grad_ys = {});

// The same value, which gradients take for a constant.
Output stop_gradient(const Scope& scope, const Output& value, std::string_view name = "StopGradient");

}  // namespace longhaul::ops
