#include "longhaul/ops/gradients/derivative.h"

namespace longhaul::ops {
namespace {

bool relu(Backward& b) {
  b.give("self", b.aten("aten::threshold_backward",
                        {{"grad_output", b.grad()}, {"self", b.result()}, {"threshold", int64_t{0}}}));
  return true;
}

bool tanh(Backward& b) {
  b.give("self", b.aten("aten::tanh_backward", {{"grad_output", b.grad()}, {"output", b.result()}}));
  return true;
}

bool sigmoid(Backward& b) {
  b.give("self", b.aten("aten::sigmoid_backward", {{"grad_output", b.grad()}, {"output", b.result()}}));
  return true;
}

bool gelu(Backward& b) {
  b.give("self", b.aten("aten::gelu_backward", {{"grad_output", b.grad()},
                                                {"self", b.input("self")},
                                                {"approximate", b.argument("approximate", "none")}}));
  return true;
}

bool silu(Backward& b) {
  b.give("self", b.aten("aten::silu_backward", {{"grad_output", b.grad()}, {"self", b.input("self")}}));
  return true;
}

bool leaky_relu(Backward& b) {
  b.give("self", b.aten("aten::leaky_relu_backward", {{"grad_output", b.grad()},
                                                      {"self", b.input("self")},
                                                      {"negative_slope", b.argument("negative_slope", 0.01)},
                                                      {"self_is_result", false}}));
  return true;
}

bool elu(Backward& b) {
  b.give("self", b.aten("aten::elu_backward", {{"grad_output", b.grad()},
                                               {"alpha", b.argument("alpha", int64_t{1})},
                                               {"scale", b.argument("scale", int64_t{1})},
                                               {"input_scale", b.argument("input_scale", int64_t{1})},
                                               {"is_result", false},
                                               {"self_or_result", b.input("self")}}));
  return true;
}

bool softplus(Backward& b) {
  b.give("self", b.aten("aten::softplus_backward", {{"grad_output", b.grad()},
                                                    {"self", b.input("self")},
                                                    {"beta", b.argument("beta", int64_t{1})},
                                                    {"threshold", b.argument("threshold", int64_t{20})}}));
  return true;
}

bool hardtanh(Backward& b) {
  b.give("self", b.aten("aten::hardtanh_backward", {{"grad_output", b.grad()},
                                                    {"self", b.input("self")},
                                                    {"min_val", b.argument("min_val", int64_t{-1})},
                                                    {"max_val", b.argument("max_val", int64_t{1})}}));
  return true;
}

template <const char* kBackward>
bool softmax(Backward& b) {
  b.give("self", b.aten(kBackward, {{"grad_output", b.grad()},
                                    {"output", b.result()},
                                    {"dim", b.argument("dim")},
                                    {"input_dtype", b.input("self").dtype()}}));
  return true;
}
constexpr char kSoftmax[] = "aten::_softmax_backward_data";
constexpr char kLogSoftmax[] = "aten::_log_softmax_backward_data";

}  // namespace

DerivativeTable activation_derivatives() {
  return {
      {"aten::relu", {relu, {"self"}}},
      {"aten::tanh", {tanh, {"self"}}},
      {"aten::sigmoid", {sigmoid, {"self"}}},
      {"aten::gelu", {gelu, {"self"}}},
      {"aten::silu", {silu, {"self"}}},
      {"aten::leaky_relu", {leaky_relu, {"self"}}},
      {"aten::elu", {elu, {"self"}}},
      {"aten::softplus", {softplus, {"self"}}},
      {"aten::hardtanh", {hardtanh, {"self"}}},
      {"aten::_softmax", {softmax<kSoftmax>, {"self"}}},
      {"aten::_log_softmax", {softmax<kLogSoftmax>, {"self"}}},
  };
}

}  // namespace longhaul::ops
