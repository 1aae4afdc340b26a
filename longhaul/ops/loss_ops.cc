#include "longhaul/ops/loss_ops.h"

#include <fmt/format.h>

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/nn_ops.h"

namespace longhaul::ops {
namespace {

constexpr int64_t kIgnoredTarget = -100;  // as PyTorch's default

// libtorch would broadcast the one against the other, and the loss would be of all pairs of their numbers.
void check_same_shape(const Scope& scope, std::string_view name, const Output& prediction, const Output& target) {
  if (prediction.shape().compatible_with(target.shape())) return;
  throw InvalidArgumentError(
      fmt::format("{}{}: the prediction {} is {} and the target {} is {}, but they must have the same shape. Use "
                  "ops::reshape, ops::squeeze or ops::unsqueeze to change one of them",
                  scope.prefix(), name, prediction.name(), prediction.shape().to_string(), target.name(),
                  target.shape().to_string()));
}

Output of_pair(const Scope& scope, const char* type, const Output& prediction, const Output& target,
               Reduction reduction, std::string_view name) {
  check_same_shape(scope, name, prediction, target);
  return aten(scope, type, name,
              {{"self", prediction}, {"target", target}, {"reduction", static_cast<int64_t>(reduction)}})
      .output();
}

}  // namespace

Output nll_loss(const Scope& scope, const Output& log_probabilities, const Output& target, Reduction reduction,
                std::string_view name) {
  return aten(scope, "aten::nll_loss_forward", name,
              {{"self", log_probabilities},
               {"target", target},
               {"reduction", static_cast<int64_t>(reduction)},
               {"ignore_index", kIgnoredTarget}})
      .output();
}

Output cross_entropy_loss(const Scope& scope, const Output& logits, const Output& target, Reduction reduction,
                          std::string_view name) {
  const Scope inner = scope.sub(name);
  return nll_loss(inner, log_softmax(inner, logits), target, reduction);
}

Output mse_loss(const Scope& scope, const Output& prediction, const Output& target, Reduction reduction,
                std::string_view name) {
  return of_pair(scope, "aten::mse_loss", prediction, target, reduction, name);
}

Output smooth_l1_loss(const Scope& scope, const Output& prediction, const Output& target, Reduction reduction,
                      std::string_view name) {
  return of_pair(scope, "aten::smooth_l1_loss", prediction, target, reduction, name);
}

Output binary_cross_entropy_with_logits(const Scope& scope, const Output& logits, const Output& target,
                                        Reduction reduction, std::string_view name) {
  return of_pair(scope, "aten::binary_cross_entropy_with_logits", logits, target, reduction, name);
}

Output l2_loss(const Scope& scope, const Output& x, std::string_view name) {
  const Scope inner = scope.sub(name);
  return mul(inner, sum(inner, square(inner, x)), 0.5);
}

}  // namespace longhaul::ops
