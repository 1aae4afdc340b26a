#include "longhaul/ops/training/regularizers.h"

#include <fmt/format.h>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/loss_ops.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/training/hyperparameter.h"

namespace longhaul::ops {
namespace {

void check_scalar(const Output& cost, const char* what) {
  const Shape& shape = cost.shape();
  if (!shape.has_rank() || shape == Shape{}) return;
  throw InvalidArgumentError(fmt::format("{} must be a scalar: {} is {}", what, cost.name(), shape.to_string()));
}

// A float 0 for an empty list.
Output sum_of(const Scope& scope, const std::vector<Output>& scalars, std::string_view name) {
  if (scalars.empty()) return constant(scope, 0.0f, name);
  if (scalars.size() == 1) return identity(scope, scalars[0], name);
  return sum(scope, stack(scope.within(name), scalars), {}, false, name);
}

// What is worked out from the weights, times the scale.
template <typename Function>
Regularizer scaled(const char* name, double scale, Function cost) {
  check_argument(scale >= 0, name, "scale", "0 or above", scale);
  return [=](const Scope& scope, const Output& weights) {
    if (scale == 0) return Output();
    const Scope inner = scope.sub(name);
    return mul(inner, cost(inner, weights), scale);
  };
}

}  // namespace

Regularizer l1_regularizer(double scale) {
  return scaled("l1_regularizer", scale,
                [](const Scope& scope, const Output& weights) { return sum(scope, abs(scope, weights)); });
}

Regularizer l2_regularizer(double scale) {
  return scaled("l2_regularizer", scale,
                [](const Scope& scope, const Output& weights) { return l2_loss(scope, weights); });
}

Regularizer l1_l2_regularizer(double scale_l1, double scale_l2) {
  return sum_regularizer({l1_regularizer(scale_l1), l2_regularizer(scale_l2)});
}

Regularizer sum_regularizer(std::vector<Regularizer> regularizers) {
  return [regularizers = std::move(regularizers)](const Scope& scope, const Output& weights) {
    std::vector<Output> costs;
    for (const Regularizer& regularizer : regularizers) {
      if (const Output cost = regularizer(scope, weights); cost.valid()) costs.push_back(cost);
    }
    return costs.empty() ? Output() : sum_of(scope, costs, "sum_regularizer");
  };
}

Output apply_regularization(const Scope& scope, const Regularizer& regularizer, const std::vector<Output>& weights,
                            std::string_view name) {
  if (weights.empty()) throw InvalidArgumentError("No weights to regularize.");
  const Scope inner = scope.sub(name);
  std::vector<Output> costs;
  for (const Output& each : weights) {
    const Output cost = regularizer(inner, each);
    if (!cost.valid()) continue;
    check_scalar(cost, "the result of a regularizer");
    costs.push_back(cost);
  }
  const Output total = sum_of(inner, costs, "sum");
  scope.graph().add_to_collection(collections::kRegularizationLosses, total);
  return total;
}

std::vector<Output> get_regularization_losses(const Graph& graph) {
  return graph.collection_of<Output>(collections::kRegularizationLosses);
}

Output get_regularization_loss(const Scope& scope, std::string_view name) {
  return sum_of(scope, get_regularization_losses(scope.graph()), name);
}

Output add_loss(const Output& loss) {
  check_scalar(loss, "a loss");
  loss.graph().add_to_collection(collections::kLosses, loss);
  return loss;
}

std::vector<Output> get_losses(const Graph& graph) {
  return graph.collection_of<Output>(collections::kLosses);
}

Output get_total_loss(const Scope& scope, bool add_regularization_losses, std::string_view name) {
  std::vector<Output> losses = get_losses(scope.graph());
  if (add_regularization_losses) {
    const std::vector<Output> costs = get_regularization_losses(scope.graph());
    losses.insert(losses.end(), costs.begin(), costs.end());
  }
  if (losses.empty()) {
    throw InvalidArgumentError(
        "get_total_loss: the graph has no losses; add some with add_loss or apply_regularization");
  }
  return sum_of(scope, losses, name);
}

}  // namespace longhaul::ops
