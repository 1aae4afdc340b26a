#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "longhaul/ops/training/hyperparameter.h"
#include "longhaul/ops/training/optimizer.h"

namespace longhaul::ops {

// Clips tensors; the formulas are TensorFlow's (tf.clip_by_*). A norm is the root of the sum of squares; for 16-bit
// tensors the sum is computed in float. Values within the limit do not change by a bit. Gradients pass through all of
// these functions. A limit is a number or a scalar tensor. InvalidArgumentError: clip_norm is a number, but not above
// 0.
//
// For a gradient of some rows (ops/indexed_slices.h), the values are measured and clipped before those of the same row
// are added. The result is again such a gradient; with clip_by_average_norm, or limits of x's shape, it is a dense
// tensor. All this is as in TensorFlow.

// max(min(x, high), low), element by element. Here a limit may also be a tensor of x's shape. NaN stays NaN.
// InvalidArgumentError: both limits are numbers, and low > high.
Output clip_by_value(const Scope& scope, const Output& x, const Hyperparameter& low, const Hyperparameter& high,
                     std::string_view name = "clip_by_value");

// x * clip_norm / max(norm(x), clip_norm). With `axes`, each part along these axes has its own norm; negative axes
// count from the end.
Output clip_by_norm(const Scope& scope, const Output& x, const Hyperparameter& clip_norm,
                    const std::vector<int64_t>& axes = {}, std::string_view name = "clip_by_norm");

// The same with norm(x) divided by the number of x's elements.
Output clip_by_average_norm(const Scope& scope, const Output& x, const Hyperparameter& clip_norm,
                            std::string_view name = "clip_by_average_norm");

// The norm of all tensors as if they were one (Pascanu et al., arXiv 1211.5063). Invalid tensors are skipped.
// InvalidArgumentError: no tensor is valid.
Output global_norm(const Scope& scope, const std::vector<Output>& tensors, std::string_view name = "global_norm");

// Returns each tensor times clip_norm / max(norm, clip_norm), where norm is their global norm, and the norm. If the
// norm is not finite, all tensors become NaN. `use_norm` is the norm, if it is already known. Invalid tensors stay
// invalid.
std::pair<std::vector<Output>, Output> clip_by_global_norm(const Scope& scope, const std::vector<Output>& tensors,
                                                           const Hyperparameter& clip_norm, const Output& use_norm = {},
                                                           std::string_view name = "clip_by_global_norm");

// The same, for use between the two halves of a training step:
//   auto [gradients, norm] = ops::clip_by_global_norm(root, optimizer.compute_gradients(root, loss), 5.0);
//   Operation train = optimizer.apply_gradients(root, gradients, step);
std::pair<std::vector<GradientAndVariable>, Output> clip_by_global_norm(const Scope& scope,
                                                                        std::vector<GradientAndVariable> gradients,
                                                                        const Hyperparameter& clip_norm,
                                                                        const Output& use_norm = {},
                                                                        std::string_view name = "clip_by_global_norm");

}  // namespace longhaul::ops
