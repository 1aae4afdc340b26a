#include "longhaul/ops/nn_ops.h"

#include <fmt/format.h>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/init_ops.h"
#include "longhaul/ops/math_ops.h"

namespace longhaul::ops {
namespace {

Output activation(const Scope& scope, const char* type, const Output& x, std::string_view name) {
  return aten(scope, type, name, {{"self", x}}).output();
}

int64_t known_size(const Output& x, int dim, const char* what) {
  if (!x.shape().has_rank() || x.shape().rank() <= dim || x.shape().dim(dim) < 0) {
    throw InvalidArgumentError(std::string(what) + ": dimension " + std::to_string(dim) + " of " + x.name() + " " +
                               x.shape().to_string() + " must be known to create the weights");
  }
  return x.shape().dim(dim);
}

struct WeightedLayerNames {
  const char *dense, *conv2d, *weights, *bias;
};

WeightedLayerNames names_of(LayerNames names) {
  switch (names) {
    case LayerNames::kLonghaul: return {"dense", "conv2d", "weights", "bias"};
    case LayerNames::kTfLayers: return {"dense", "conv2d", "kernel", "bias"};
    case LayerNames::kSlim: return {"fully_connected", "Conv", "weights", "biases"};
  }
  throw InternalError("unknown LayerNames");
}

void check_is_variable(const Output& weight) {
  Operation op = weight.op();
  while (op.type() == "Identity") op = op.inputs()[0].op();
  if (op.type() == "VariableV2") return;
  throw InvalidArgumentError(
      fmt::format("embedding: a sparse gradient requires a variable, but {} is computed ({}). Look up the rows in the "
                  "variable itself, or do not set sparse_gradient",
                  weight.name(), op.type()));
}

NamedArgs pool_arguments(const Output& x, const Pair& kernel_size, const Pool2dOptions& options) {
  return {{"self", x},
          {"kernel_size", kernel_size.list()},
          {"stride", options.stride.value_or(kernel_size).list()},
          {"padding", options.padding.list()}};
}

}  // namespace

Output relu(const Scope& scope, const Output& x, std::string_view name) {
  return activation(scope, "aten::relu", x, name);
}
Output leaky_relu(const Scope& scope, const Output& x, double negative_slope, std::string_view name) {
  return aten(scope, "aten::leaky_relu", name, {{"self", x}, {"negative_slope", negative_slope}}).output();
}
Output gelu(const Scope& scope, const Output& x, std::string_view name) {
  return activation(scope, "aten::gelu", x, name);
}
Output silu(const Scope& scope, const Output& x, std::string_view name) {
  return activation(scope, "aten::silu", x, name);
}
Output tanh(const Scope& scope, const Output& x, std::string_view name) {
  return activation(scope, "aten::tanh", x, name);
}
Output sigmoid(const Scope& scope, const Output& x, std::string_view name) {
  return activation(scope, "aten::sigmoid", x, name);
}
Output softmax(const Scope& scope, const Output& x, int64_t dim, std::string_view name) {
  return aten(scope, "aten::_softmax", name, {{"self", x}, {"dim", dim}, {"half_to_float", false}}).output();
}
Output log_softmax(const Scope& scope, const Output& x, int64_t dim, std::string_view name) {
  return aten(scope, "aten::_log_softmax", name, {{"self", x}, {"dim", dim}, {"half_to_float", false}}).output();
}

Output linear(const Scope& scope, const Output& x, const Output& weight, const std::optional<Output>& bias,
              std::string_view name) {
  const Scope inner = scope.sub(name);
  const Output transposed = aten(inner, "aten::t", "t", {{"self", weight}}).output();
  const bool matrix = x.shape().has_rank() && x.shape().rank() == 2;
  if (bias && matrix) return addmm(inner, *bias, x, transposed);
  const Output product = matmul(inner, x, transposed);
  return bias ? add(inner, product, *bias) : product;
}

Output conv2d(const Scope& scope, const Output& x, const Output& weight, const std::optional<Output>& bias,
              const Conv2dOptions& options, std::string_view name) {
  NamedArgs arguments = {{"input", x},
                         {"weight", weight},
                         {"stride", options.stride.list()},
                         {"padding", options.padding.list()},
                         {"dilation", options.dilation.list()},
                         {"transposed", false},
                         {"output_padding", std::vector<int64_t>{0, 0}},
                         {"groups", options.groups}};
  if (bias) arguments.push_back({"bias", *bias});
  return aten(scope, "aten::convolution", name, arguments).output();
}

Output max_pool2d(const Scope& scope, const Output& x, Pair kernel_size, const Pool2dOptions& options,
                  std::string_view name) {
  return aten(scope, "aten::max_pool2d_with_indices", name, pool_arguments(x, kernel_size, options)).output();
}

Output avg_pool2d(const Scope& scope, const Output& x, Pair kernel_size, const Pool2dOptions& options,
                  std::string_view name) {
  return aten(scope, "aten::avg_pool2d", name, pool_arguments(x, kernel_size, options)).output();
}

Output layer_norm(const Scope& scope, const Output& x, const Output& weight, const Output& bias, double eps,
                  std::string_view name) {
  return aten(scope, "aten::native_layer_norm", name,
              {{"input", x},
               {"weight", weight},
               {"bias", bias},
               {"normalized_shape", weight.shape().dims()},
               {"eps", eps}})
      .output();
}

Output embedding(const Scope& scope, const Output& weight, const Output& indices, const EmbeddingOptions& options,
                 std::string_view name) {
  NamedArgs arguments = {{"weight", weight}, {"indices", indices}};
  if (options.sparse_gradient) {
    check_is_variable(weight);
    arguments.push_back({"sparse", true});
  }
  return aten(scope, "aten::embedding", name, arguments).output();
}

Output dropout(const Scope& scope, const Output& x, double p, std::string_view name) {
  if (p == 0) return x;
  if (p < 0 || p >= 1) throw InvalidArgumentError("dropout: p must be in [0, 1), not " + std::to_string(p));
  const Scope inner = scope.sub(name);
  const Output kept = aten(inner, "aten::bernoulli.p", "bernoulli", {{"self", x}, {"p", 1 - p}}).output();
  return mul(inner, x, div(inner, kept, 1 - p));
}

Output dense(const Scope& scope, const Output& x, int64_t units, std::string_view name, LayerNames names) {
  const int64_t inputs = known_size(x, 1, "dense");
  const WeightedLayerNames called = names_of(names);
  const Scope inner = scope.sub(name.empty() ? called.dense : name);
  const Variable weights = variable(inner, called.weights, glorot_uniform(inner, {inputs, units}, x.dtype()));
  const Variable bias = variable(inner, called.bias, zeros(inner, {units}, x.dtype()));
  return addmm(inner, bias, x, weights);
}

Output conv2d_layer(const Scope& scope, const Output& x, int64_t filters, Pair kernel_size,
                    const Conv2dOptions& options, std::string_view name, LayerNames names) {
  const int64_t channels = known_size(x, 1, "conv2d_layer") / options.groups;
  const WeightedLayerNames called = names_of(names);
  const Scope inner = scope.sub(name.empty() ? called.conv2d : name);
  const Shape shape{filters, channels, kernel_size.values[0], kernel_size.values[1]};
  const Variable weights = variable(inner, called.weights, he_normal(inner, shape, x.dtype()));
  const Variable bias = variable(inner, called.bias, zeros(inner, {filters}, x.dtype()));
  return conv2d(inner, x, weights, bias, options);
}

}  // namespace longhaul::ops
