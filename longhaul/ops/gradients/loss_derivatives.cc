#include "longhaul/ops/gradients/derivative.h"

namespace longhaul::ops {
namespace {

constexpr int64_t kMean = 1;  // at::Reduction

template <const char* kBackward>
bool nll_loss(Backward& b) {
  NamedArgs arguments = {{"grad_output", b.grad()},
                         {"self", b.input("self")},
                         {"target", b.input("target")},
                         {"reduction", b.argument("reduction")},
                         {"ignore_index", b.argument("ignore_index")},
                         {"total_weight", b.result(1)}};
  if (b.has("weight")) arguments.push_back({"weight", b.input("weight")});
  b.give("self", b.aten(kBackward, arguments));
  return !b.needs("weight");
}
constexpr char kNllLoss[] = "aten::nll_loss_backward";
constexpr char kNllLoss2d[] = "aten::nll_loss2d_backward";

// Losses of a difference: the target's gradient is the other way round.
bool mse_loss(Backward& b) {
  const auto backward = [&](const char* of, const char* from) {
    return b.aten("aten::mse_loss_backward", {{"grad_output", b.grad()},
                                              {"self", b.input(of)},
                                              {"target", b.input(from)},
                                              {"reduction", b.argument("reduction", kMean)}});
  };
  if (b.input("self").shape() != b.input("target").shape()) return false;
  if (b.needs("self")) b.give("self", backward("self", "target"));
  if (b.needs("target")) b.give("target", backward("target", "self"));
  return true;
}

bool smooth_l1_loss(Backward& b) {
  const auto backward = [&](const char* of, const char* from) {
    return b.aten("aten::smooth_l1_loss_backward", {{"grad_output", b.grad()},
                                                    {"self", b.input(of)},
                                                    {"target", b.input(from)},
                                                    {"reduction", b.argument("reduction", kMean)},
                                                    {"beta", b.argument("beta", 1.0)}});
  };
  if (b.input("self").shape() != b.input("target").shape()) return false;
  if (b.needs("self")) b.give("self", backward("self", "target"));
  if (b.needs("target")) b.give("target", backward("target", "self"));
  return true;
}

// (sigmoid(self) - target), weighed as the reduction says; that is half of what the squared difference would give.
bool binary_cross_entropy(Backward& b) {
  if (b.needs("target") || b.input("self").shape() != b.input("target").shape()) return false;
  const Output twice =
      b.aten("aten::mse_loss_backward", {{"grad_output", b.grad()},
                                         {"self", b.aten("aten::sigmoid", {{"self", b.input("self")}})},
                                         {"target", b.input("target")},
                                         {"reduction", b.argument("reduction", kMean)}});
  b.give("self", b.times(twice, 0.5));
  return true;
}

}  // namespace

DerivativeTable loss_derivatives() {
  return {
      {"aten::nll_loss_forward", {nll_loss<kNllLoss>, {"self", "target", "weight"}}},
      {"aten::nll_loss2d_forward", {nll_loss<kNllLoss2d>, {"self", "target", "weight"}}},
      {"aten::mse_loss", {mse_loss, {"self", "target"}}},
      {"aten::binary_cross_entropy_with_logits", {binary_cross_entropy, {"self", "target"}}},
      {"aten::smooth_l1_loss", {smooth_l1_loss, {"self", "target"}}},
  };
}

}  // namespace longhaul::ops
