#include "longhaul/runtime/ops/gradient_cases_test.h"

namespace longhaul {
namespace {

constexpr Values kPositive = Values::kPositive;
constexpr Values kIndex = Values::kIndex;
constexpr Values kBoolean = Values::kBool;
using Ints = std::vector<int64_t>;

constexpr int64_t operator""_i(unsigned long long value) {
  return static_cast<int64_t>(value);
}

std::vector<GradientCase> arithmetic_cases() {
  return {
      {"aten::add.Tensor", {{"self", {2, 3}}, {"other", {2, 3}}}, {{"alpha", 2.5}}},
      {"aten::add.Tensor", {{"self", {4, 3}}, {"other", {3}}}},
      {"aten::add.Tensor", {{"self", {1, 3}}, {"other", {2, 3}}}},
      {"aten::add.Tensor", {{"self", {3, 1}}, {"other", {2, 1, 4}}}},
      {"aten::sub.Tensor", {{"self", {2, 3}}, {"other", {1}}}},
      {"aten::sub.Tensor", {{"self", {2, 3}}, {"other", {2, 1}}}, {{"alpha", 2_i}}},
      {"aten::mul.Tensor", {{"self", {4, 3}}, {"other", {3}}}},
      {"aten::mul.Tensor", {{"self", {5}}, {"other", {}}}},
      {"aten::div.Tensor", {{"self", {4, 3}}, {"other", {3}, kPositive}}},
      {"aten::add.Scalar", {{"self", {4, 3}}}, {{"other", 1.5}}},
      {"aten::sub.Scalar", {{"self", {4, 3}}}, {{"other", 1.5}}},
      {"aten::mul.Scalar", {{"self", {4, 3}}}, {{"other", 1.5}}},
      {"aten::div.Scalar", {{"self", {4, 3}}}, {{"other", 1.5}}},
      {"aten::rsub.Scalar", {{"self", {4, 3}}}, {{"other", 1.5}}},
      {"aten::rsub.Scalar", {{"self", {4, 3}}}, {{"other", 1.5}, {"alpha", 3_i}}},
      {"aten::pow.Tensor_Scalar", {{"self", {4, 3}}}, {{"exponent", 2_i}}},
      {"aten::pow.Tensor_Scalar", {{"self", {4, 3}, kPositive}}, {{"exponent", 1.7}}},
      {"aten::pow.Tensor_Scalar", {{"self", {4, 3}}}, {{"exponent", 0_i}}},
      {"aten::neg", {{"self", {4, 3}}}},
      {"aten::reciprocal", {{"self", {4, 3}, kPositive}}},
      {"aten::exp", {{"self", {4, 3}}}},
      {"aten::log", {{"self", {4, 3}, kPositive}}},
      {"aten::sqrt", {{"self", {4, 3}, kPositive}}},
      {"aten::rsqrt", {{"self", {4, 3}, kPositive}}},
      {"aten::abs", {{"self", {4, 3}}}},
      {"aten::sin", {{"self", {4, 3}}}},
      {"aten::cos", {{"self", {4, 3}}}},
      {"aten::clamp", {{"self", {4, 3}}}, {{"min", -0.5}, {"max", 0.4}}},
      {"aten::clamp", {{"self", {4, 3}}}, {{"max", 0.4}}},
      {"aten::maximum", {{"self", {4, 3}}, {"other", {3}}}},
      {"aten::minimum", {{"self", {4, 3}}, {"other", {4, 1}}}},
      {"aten::mm", {{"self", {4, 3}}, {"mat2", {3, 5}}}},
      {"aten::addmm", {{"self", {5}}, {"mat1", {4, 3}}, {"mat2", {3, 5}}}},
      {"aten::addmm", {{"self", {4, 5}}, {"mat1", {4, 3}}, {"mat2", {3, 5}}}, {{"beta", 0.5}, {"alpha", 2_i}}},
      {"aten::bmm", {{"self", {4, 2, 3}}, {"mat2", {4, 3, 5}}}},
  };
}

std::vector<GradientCase> reduction_cases() {
  return {
      {"aten::sum", {{"self", {4, 3}}}},
      {"aten::sum.dim_IntList", {{"self", {4, 3, 2}}}, {{"dim", Ints{0, -1}}}},
      {"aten::sum.dim_IntList", {{"self", {4, 3, 2}}}, {{"dim", Ints{1}}, {"keepdim", true}}},
      {"aten::sum.dim_IntList", {{"self", {4, 3}}}, {{"dim", Ints{}}, {"keepdim", true}}},
      {"aten::mean", {{"self", {4, 3}}}},
      {"aten::mean.dim", {{"self", {4, 3, 2}}}, {{"dim", Ints{0, 2}}}},
      {"aten::mean.dim", {{"self", {4, 3, 2}}}, {{"dim", Ints{-1}}, {"keepdim", true}}},
      {"aten::amax", {{"self", {4, 3}}}, {{"dim", Ints{1}}}},
      {"aten::amin", {{"self", {4, 3}}}, {{"dim", Ints{0, 1}}, {"keepdim", true}}},
      {"aten::max.dim", {{"self", {4, 3}}}, {{"dim", 1_i}}},
      {"aten::min.dim", {{"self", {4, 3}}}, {{"dim", 0_i}, {"keepdim", true}}},
      {"aten::logsumexp", {{"self", {4, 3}}}, {{"dim", Ints{1}}}},
      {"aten::linalg_vector_norm", {{"self", {4, 3}}}},
      {"aten::linalg_vector_norm", {{"self", {4, 3, 2}}}, {{"dim", Ints{0, -1}}}},
      {"aten::linalg_vector_norm", {{"self", {4, 3}}}, {{"dim", Ints{1}}, {"keepdim", true}}},
  };
}

std::vector<GradientCase> array_cases() {
  return {
      {"aten::reshape", {{"self", {4, 6}}}, {{"shape", Ints{-1, 3}}}},
      {"aten::view", {{"self", {4, 6}}}, {{"size", Ints{-1, 2, 3}}}},
      {"aten::flatten.using_ints", {{"self", {4, 3, 2}}}, {{"start_dim", 1_i}}},
      {"aten::squeeze", {{"self", {4, 1, 2}}}},
      {"aten::squeeze.dim", {{"self", {4, 1, 2}}}, {{"dim", 1_i}}},
      {"aten::unsqueeze", {{"self", {4, 2}}}, {{"dim", -1_i}}},
      {"aten::expand", {{"self", {4, 1}}}, {{"size", Ints{-1, 3}}}},
      {"aten::to.dtype", {{"self", {4, 3}}}, {{"dtype", kFloat}}},
      {"aten::_to_copy", {{"self", {4, 3}}}, {{"dtype", kFloat}}},
      {"aten::clone", {{"self", {4, 3}}}},
      {"aten::contiguous", {{"self", {4, 3}}}},
      {"aten::t", {{"self", {4, 3}}}},
      {"aten::transpose.int", {{"self", {4, 3, 2}}}, {{"dim0", 0_i}, {"dim1", -1_i}}},
      {"aten::permute", {{"self", {4, 3, 2}}}, {{"dims", Ints{2, 0, -2}}}},
      {"aten::slice.Tensor", {{"self", {4, 6}}}, {{"dim", 1_i}, {"start", 1_i}, {"end", -1_i}, {"step", 2_i}}},
      {"aten::slice.Tensor", {{"self", {4, 6}}}, {{"dim", 0_i}, {"start", 2_i}}},
      {"aten::select.int", {{"self", {4, 6}}}, {{"dim", 1_i}, {"index", 3_i}}},
      {"aten::index_select", {{"self", {4, 3}}, {"index", {5}, kIndex, 3}}, {{"dim", 1_i}}},
      {"aten::gather", {{"self", {4, 3}}, {"index", {4, 5}, kIndex, 3}}, {{"dim", 1_i}}},
      {"aten::cat", {{"tensors", {4, 3}}, {"tensors", {4, 2}}, {"tensors", {4, 1}}}, {{"dim", -1_i}}},
      {"aten::stack", {{"tensors", {4, 3}}, {"tensors", {4, 3}}}, {{"dim", 1_i}}},
      {"aten::split.Tensor", {{"self", {4, 5}}}, {{"split_size", 2_i}, {"dim", 1_i}}, {0, 2}},
      {"aten::split_with_sizes", {{"self", {4, 5}}}, {{"split_sizes", Ints{1, 4}}, {"dim", 1_i}}, {0, 1}},
      {"aten::where.self", {{"condition", {4, 3}, kBoolean}, {"self", {4, 3}}, {"other", {3}}}},
      {"aten::masked_fill.Scalar", {{"self", {4, 3}}, {"mask", {4, 3}, kBoolean}}, {{"value", 7.0}}},
  };
}

std::vector<GradientCase> activation_cases() {
  return {
      {"aten::relu", {{"self", {4, 3}}}},
      {"aten::tanh", {{"self", {4, 3}}}},
      {"aten::sigmoid", {{"self", {4, 3}}}},
      {"aten::gelu", {{"self", {4, 3}}}},
      {"aten::gelu", {{"self", {4, 3}}}, {{"approximate", "tanh"}}},
      {"aten::silu", {{"self", {4, 3}}}},
      {"aten::leaky_relu", {{"self", {4, 3}}}, {{"negative_slope", 0.2}}},
      {"aten::elu", {{"self", {4, 3}}}, {{"alpha", 1.5}}},
      {"aten::softplus", {{"self", {4, 3}}}, {{"beta", 2.0}}},
      {"aten::hardtanh", {{"self", {4, 3}}}, {{"min_val", -0.5}, {"max_val", 0.5}}},
      {"aten::_softmax", {{"self", {4, 3}}}, {{"dim", -1_i}, {"half_to_float", false}}},
      {"aten::_log_softmax", {{"self", {4, 3}}}, {{"dim", 1_i}, {"half_to_float", false}}},
  };
}

ops::NamedArgs convolution_constants(int64_t stride, int64_t groups) {
  return {{"stride", Ints{stride, 1}}, {"padding", Ints{1, 0}},        {"dilation", Ints{1, 1}},
          {"transposed", false},       {"output_padding", Ints{0, 0}}, {"groups", groups}};
}

std::vector<GradientCase> network_cases() {
  const ops::NamedArgs norm = {{"training", true}, {"momentum", 0.1}, {"eps", 1e-5}};
  const ops::NamedArgs frozen = {{"training", false}, {"momentum", 0.1}, {"eps", 1e-5}};
  const ops::NamedArgs layer = {{"normalized_shape", Ints{3}}, {"eps", 1e-5}};
  return {
      {"aten::convolution",
       {{"input", {4, 2, 6, 5}}, {"weight", {3, 2, 3, 2}}, {"bias", {3}}},
       convolution_constants(2, 1)},
      {"aten::convolution", {{"input", {4, 2, 6, 5}}, {"weight", {2, 1, 3, 3}}}, convolution_constants(1, 2)},
      {"aten::max_pool2d_with_indices", {{"self", {4, 2, 6, 6}}}, {{"kernel_size", Ints{2, 2}}}},
      {"aten::max_pool2d_with_indices",
       {{"self", {4, 2, 7, 7}}},
       {{"kernel_size", Ints{3, 3}}, {"stride", Ints{2, 1}}, {"padding", Ints{1, 1}}, {"ceil_mode", true}}},
      {"aten::avg_pool2d", {{"self", {4, 2, 6, 6}}}, {{"kernel_size", Ints{2, 3}}}},
      {"aten::avg_pool2d",
       {{"self", {4, 2, 6, 6}}},
       {{"kernel_size", Ints{3, 3}}, {"padding", Ints{1, 1}}, {"count_include_pad", false}}},
      {"aten::_adaptive_avg_pool2d", {{"self", {4, 2, 6, 6}}}, {{"output_size", Ints{2, 3}}}},
      {"aten::native_batch_norm", {{"input", {4, 3, 2, 2}}, {"weight", {3}}, {"bias", {3}}}, norm},
      {"aten::native_batch_norm",
       {{"input", {4, 3}},
        {"weight", {3}},
        {"bias", {3}},
        {"running_mean", {3}, Values::kFixed},
        {"running_var", {3}, Values::kFixed}},
       frozen},
      {"aten::native_layer_norm", {{"input", {4, 3}}, {"weight", {3}}, {"bias", {3}}}, layer},
      {"aten::native_layer_norm", {{"input", {4, 2, 3}}}, layer},
      {"aten::embedding", {{"indices", {4, 2}, kIndex, 5}, {"weight", {5, 3}}}},
  };
}

std::vector<GradientCase> loss_cases() {
  const ops::NamedArgs mean = {{"reduction", 1_i}, {"ignore_index", -100_i}};
  const ops::NamedArgs sum = {{"reduction", 2_i}, {"ignore_index", 1_i}};
  const ops::NamedArgs none = {{"reduction", 0_i}, {"ignore_index", -100_i}};
  return {
      {"aten::nll_loss_forward", {{"self", {4, 3}}, {"target", {4}, kIndex, 3}}, mean},
      {"aten::nll_loss_forward", {{"self", {4, 3}}, {"target", {4}, kIndex, 3}}, sum},
      {"aten::nll_loss_forward", {{"self", {4, 3}}, {"target", {4}, kIndex, 3}}, none},
      {"aten::nll_loss2d_forward", {{"self", {4, 3, 2, 2}}, {"target", {4, 2, 2}, kIndex, 3}}, mean},
      {"aten::mse_loss", {{"self", {4, 3}}, {"target", {4, 3}}}},
      {"aten::mse_loss", {{"self", {4, 3}}, {"target", {4, 3}}}, {{"reduction", 0_i}}},
      {"aten::smooth_l1_loss", {{"self", {4, 3}}, {"target", {4, 3}}}, {{"beta", 0.5}}},
      {"aten::binary_cross_entropy_with_logits", {{"self", {4, 3}}, {"target", {4, 3}, kBoolean}}},
      {"aten::binary_cross_entropy_with_logits",
       {{"self", {4, 3}}, {"target", {4, 3}, kBoolean}},
       {{"reduction", 2_i}}},
  };
}

}  // namespace

std::vector<GradientCase> gradient_cases() {
  std::vector<GradientCase> cases;
  for (const auto& family :
       {arithmetic_cases(), reduction_cases(), array_cases(), activation_cases(), network_cases(), loss_cases()})
    cases.insert(cases.end(), family.begin(), family.end());
  return cases;
}

}  // namespace longhaul
