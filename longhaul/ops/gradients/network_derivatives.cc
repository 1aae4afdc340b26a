#include <fmt/format.h>

#include "longhaul/ops/gradients/derivative.h"
#include "longhaul/ops/indexed_slices.h"

namespace longhaul::ops {
namespace {

std::vector<int64_t> needed_mask(const Backward& b, const std::vector<std::string>& arguments) {
  std::vector<int64_t> mask;
  for (const std::string& argument : arguments) mask.push_back(b.needs(argument) ? 1 : 0);
  return mask;
}

void give_all(Backward& b, const std::vector<std::string>& arguments, const Operation& from) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (b.needs(arguments[i])) b.give(arguments[i], from.output(static_cast<int>(i)));
  }
}

void pass_if_given(const Backward& b, const std::vector<std::string>& names, NamedArgs* arguments) {
  for (const std::string& name : names) {
    if (b.has(name)) arguments->push_back({name, b.input(name)});
  }
}

bool convolution(Backward& b) {
  const std::vector<std::string> wanted = {"input", "weight", "bias"};
  NamedArgs arguments = {{"grad_output", b.grad()},
                         {"input", b.input("input")},
                         {"weight", b.input("weight")},
                         {"output_mask", needed_mask(b, wanted)}};
  for (const char* name : {"stride", "padding", "dilation", "transposed", "output_padding", "groups"})
    arguments.push_back({name, b.argument(name)});
  if (b.has("bias")) arguments.push_back({"bias_sizes", b.sizes(b.input("bias"))});
  give_all(b, wanted, b.aten_op("aten::convolution_backward", arguments));
  return true;
}

bool max_pool2d(Backward& b) {
  b.give("self",
         b.aten("aten::max_pool2d_with_indices_backward", {{"grad_output", b.grad()},
                                                           {"self", b.input("self")},
                                                           {"kernel_size", b.argument("kernel_size")},
                                                           {"stride", b.argument("stride", std::vector<int64_t>{})},
                                                           {"padding", b.argument("padding", int64_t{0})},
                                                           {"dilation", b.argument("dilation", int64_t{1})},
                                                           {"ceil_mode", b.argument("ceil_mode", false)},
                                                           {"indices", b.result(1)}}));
  return true;
}

bool avg_pool2d(Backward& b) {
  NamedArgs arguments = {{"grad_output", b.grad()},
                         {"self", b.input("self")},
                         {"kernel_size", b.argument("kernel_size")},
                         {"stride", b.argument("stride", std::vector<int64_t>{})},
                         {"padding", b.argument("padding", int64_t{0})},
                         {"ceil_mode", b.argument("ceil_mode", false)},
                         {"count_include_pad", b.argument("count_include_pad", true)}};
  if (const auto* divisor = b.op().find_attr<int64_t>("divisor_override"))
    arguments.push_back({"divisor_override", *divisor});
  b.give("self", b.aten("aten::avg_pool2d_backward", arguments));
  return true;
}

bool adaptive_avg_pool2d(Backward& b) {
  b.give("self", b.aten("aten::_adaptive_avg_pool2d_backward", {{"grad_output", b.grad()}, {"self", b.input("self")}}));
  return true;
}

bool only_first_gradient(const Backward& b) {
  return b.grad(0).valid() && !b.grad(1).valid() && !b.grad(2).valid();
}

bool batch_norm(Backward& b) {
  if (!only_first_gradient(b)) return false;
  const std::vector<std::string> wanted = {"input", "weight", "bias"};
  NamedArgs arguments = {{"grad_out", b.grad()},
                         {"input", b.input("input")},
                         {"save_mean", b.result(1)},
                         {"save_invstd", b.result(2)},
                         {"train", b.argument("training")},
                         {"eps", b.argument("eps")},
                         {"output_mask", needed_mask(b, wanted)}};
  pass_if_given(b, {"weight", "running_mean", "running_var"}, &arguments);
  give_all(b, wanted, b.aten_op("aten::native_batch_norm_backward", arguments));
  return !b.needs("running_mean") && !b.needs("running_var");
}

bool layer_norm(Backward& b) {
  if (!only_first_gradient(b)) return false;
  const std::vector<std::string> wanted = {"input", "weight", "bias"};
  NamedArgs arguments = {
      {"grad_out", b.grad()}, {"input", b.input("input")}, {"normalized_shape", b.argument("normalized_shape")},
      {"mean", b.result(1)},  {"rstd", b.result(2)},       {"output_mask", needed_mask(b, wanted)}};
  pass_if_given(b, {"weight", "bias"}, &arguments);
  give_all(b, wanted, b.aten_op("aten::native_layer_norm_backward", arguments));
  return true;
}

// The rows of the gradient that are not zero.
bool sparse_embedding(Backward& b) {
  const Shape& weight = b.input("weight").shape();
  if (!weight.fully_defined() || b.constant<int64_t>("padding_idx", -1) >= 0 ||
      b.constant("scale_grad_by_freq", false)) {
    throw UnimplementedError(fmt::format(
        "{}: a sparse gradient requires a table of known shape, and neither padding_idx nor scale_grad_by_freq",
        b.op().name()));
  }
  const Output rows = b.aten("aten::reshape", {{"self", b.grad()}, {"shape", std::vector<int64_t>{-1, weight.dim(1)}}});
  const Output indices = b.aten("aten::reshape", {{"self", b.input("indices")}, {"shape", std::vector<int64_t>{-1}}});
  b.give("weight", indexed_slices(b.scope(), rows, indices, weight.dim(0)));
  return true;
}

bool embedding(Backward& b) {
  if (b.constant("sparse", false)) return sparse_embedding(b);
  const Shape& weight = b.input("weight").shape();
  if (!weight.has_rank() || weight.dim(0) < 0) return false;
  b.give("weight",
         b.aten("aten::embedding_dense_backward", {{"grad_output", b.grad()},
                                                   {"indices", b.input("indices")},
                                                   {"num_weights", weight.dim(0)},
                                                   {"padding_idx", b.argument("padding_idx", int64_t{-1})},
                                                   {"scale_grad_by_freq", b.argument("scale_grad_by_freq", false)}}));
  return true;
}

}  // namespace

DerivativeTable network_derivatives() {
  return {
      {"aten::convolution", {convolution, {"input", "weight", "bias"}}},
      {"aten::max_pool2d_with_indices", {max_pool2d, {"self"}}},
      {"aten::avg_pool2d", {avg_pool2d, {"self"}}},
      {"aten::_adaptive_avg_pool2d", {adaptive_avg_pool2d, {"self"}}},
      {"aten::native_batch_norm", {batch_norm, {"input", "weight", "bias", "running_mean", "running_var"}}},
      {"aten::native_layer_norm", {layer_norm, {"input", "weight", "bias"}}},
      {"aten::embedding", {embedding, {"weight", "indices"}}},
  };
}

}  // namespace longhaul::ops
