#pragma once

#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// How a loss is computed from the losses of the elements. The numbers are those of at::Reduction.
enum class Reduction { kNone = 0, kMean = 1, kSum = 2 };

// Negative log likelihood. `log_probabilities` [batch, classes], `target` [batch] int64.
Output nll_loss(const Scope& scope, const Output& log_probabilities, const Output& target,
                Reduction reduction = Reduction::kMean, std::string_view name = "nll_loss");
// log_softmax and nll_loss: `logits` [batch, classes], `target` [batch] int64.
Output cross_entropy_loss(const Scope& scope, const Output& logits, const Output& target,
                          Reduction reduction = Reduction::kMean, std::string_view name = "cross_entropy_loss");
// The losses below take a prediction and a target of the same shape, and do not broadcast. InvalidArgumentError, with
// the names of both tensors: the shapes differ. It is thrown here if they are known, otherwise when the operation runs.
Output mse_loss(const Scope& scope, const Output& prediction, const Output& target,
                Reduction reduction = Reduction::kMean, std::string_view name = "mse_loss");
Output smooth_l1_loss(const Scope& scope, const Output& prediction, const Output& target,
                      Reduction reduction = Reduction::kMean, std::string_view name = "smooth_l1_loss");
// `target`: probabilities of the logits' shape and dtype.
Output binary_cross_entropy_with_logits(const Scope& scope, const Output& logits, const Output& target,
                                        Reduction reduction = Reduction::kMean,
                                        std::string_view name = "binary_cross_entropy_with_logits");
// Half the sum of the squares, for weight decay.
Output l2_loss(const Scope& scope, const Output& x, std::string_view name = "l2_loss");

}  // namespace longhaul::ops
