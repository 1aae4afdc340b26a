#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"

namespace longhaul {

namespace collections {
inline constexpr char kLosses[] = "losses";
inline constexpr char kRegularizationLosses[] = "regularization_losses";
}  // namespace collections

namespace ops {

// Adds operations that compute the cost of weights, and returns the cost, a scalar. An invalid Output means no cost.
using Regularizer = std::function<Output(const Scope& scope, const Output& weights)>;

// The formulas are those of TensorFlow's tf.contrib.layers. A scale of 0 switches its part off.
// InvalidArgumentError: a scale below 0.
Regularizer l1_regularizer(double scale);                                 // scale * sum(|w|)
Regularizer l2_regularizer(double scale);                                 // scale * sum(w^2) / 2
Regularizer l1_l2_regularizer(double scale_l1 = 1, double scale_l2 = 1);  // the sum of both
Regularizer sum_regularizer(std::vector<Regularizer> regularizers);

// The total cost of `weights` (usually variables); 0 if none has a cost. It is added to the collection
// kRegularizationLosses, so it is part of get_total_loss. InvalidArgumentError: a cost is not a scalar (the message
// names it); there are no weights.
Output apply_regularization(const Scope& scope, const Regularizer& regularizer, const std::vector<Output>& weights,
                            std::string_view name = "get_regularization_penalty");

std::vector<Output> get_regularization_losses(const Graph& graph);
// The sum of the regularization losses; 0 if there are none.
Output get_regularization_loss(const Scope& scope, std::string_view name = "total_regularization_loss");

// Adds a loss, a scalar, to the collection kLosses, and returns it. InvalidArgumentError: it is not a scalar.
Output add_loss(const Output& loss);
std::vector<Output> get_losses(const Graph& graph);
// The sum of the losses, by default with the regularization losses. This is the loss to minimize. InvalidArgumentError:
// there are no losses.
Output get_total_loss(const Scope& scope, bool add_regularization_losses = true, std::string_view name = "total_loss");

}  // namespace ops
}  // namespace longhaul
