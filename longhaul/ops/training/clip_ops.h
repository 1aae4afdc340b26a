#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/ops/training/hyperparameter.h"
#include "longhaul/ops/training/optimizer.h"

namespace longhaul::ops {

// Tensors made smaller where they are too large; the formulas are TensorFlow's (tf.clip_by_*). A norm is the root of
// the sum of squares, of 16-bit tensors summed up in float. What is within its limit comes out as it went in, to the
// bit. Gradients pass through all of it. A limit is a number or a scalar tensor.
// InvalidArgumentError: a clip_norm that is a number and not above 0.
//
// Of a gradient of some rows (ops/indexed_slices.h) the values are measured and clipped as they are, before those of
// one row are added, and the result is such a gradient again; not so with clip_by_average_norm, and with limits of x's
// shape: there it is the tensor. That, too, is TensorFlow's.

// max(min(x, high), low), element by element; a tensor may also have x's shape. NaN stays. InvalidArgumentError: both
// are numbers, and low > high.
Output clip_by_value(const Scope& scope, const Output& x, const Hyperparameter& low, const Hyperparameter& high,
                     std::string_view name = "clip_by_value");

// x * clip_norm / max(norm(x), clip_norm). With `axes` each part that lies along them has a norm of its own; a negative
// one counts from the end.
Output clip_by_norm(const Scope& scope, const Output& x, const Hyperparameter& clip_norm,
                    const std::vector<int64_t>& axes = {}, std::string_view name = "clip_by_norm");

// The same with norm(x) divided by the number of x's elements.
Output clip_by_average_norm(const Scope& scope, const Output& x, const Hyperparameter& clip_norm,
                            std::string_view name = "clip_by_average_norm");

// The norm of all tensors as if they were one: Pascanu et al., arXiv 1211.5063. Those that are not valid are left out.
// InvalidArgumentError: none is valid.
Output global_norm(const Scope& scope, const std::vector<Output>& tensors, std::string_view name = "global_norm");

// Each tensor times clip_norm / max(norm, clip_norm), with the norm that they have together, and that norm. Where the
// norm is not finite all of them become NaN. `use_norm` is the norm, where it is known already. Tensors that are not
// valid stay so.
std::pair<std::vector<Output>, Output> clip_by_global_norm(const Scope& scope, const std::vector<Output>& tensors,
                                                           const Hyperparameter& clip_norm, const Output& use_norm = {},
                                                           std::string_view name = "clip_by_global_norm");

// The same between the two halves of a training step:
//   auto [gradients, norm] = ops::clip_by_global_norm(root, optimizer.compute_gradients(root, loss), 5.0);
//   Operation train = optimizer.apply_gradients(root, gradients, step);
std::pair<std::vector<GradientAndVariable>, Output> clip_by_global_norm(const Scope& scope,
                                                                        std::vector<GradientAndVariable> gradients,
                                                                        const Hyperparameter& clip_norm,
                                                                        const Output& use_norm = {},
                                                                        std::string_view name = "clip_by_global_norm");

}  // namespace longhaul::ops
