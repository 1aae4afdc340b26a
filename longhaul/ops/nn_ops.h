#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "longhaul/graph/scope.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {

Output relu(const Scope& scope, const Output& x, std::string_view name = "relu");
Output leaky_relu(const Scope& scope, const Output& x, double negative_slope = 0.01,
                  std::string_view name = "leaky_relu");
Output gelu(const Scope& scope, const Output& x, std::string_view name = "gelu");
Output silu(const Scope& scope, const Output& x, std::string_view name = "silu");
Output tanh(const Scope& scope, const Output& x, std::string_view name = "tanh");
Output sigmoid(const Scope& scope, const Output& x, std::string_view name = "sigmoid");
Output softmax(const Scope& scope, const Output& x, int64_t dim = -1, std::string_view name = "softmax");
Output log_softmax(const Scope& scope, const Output& x, int64_t dim = -1, std::string_view name = "log_softmax");

// x @ weight^T + bias, with the weight [outputs, inputs] as in PyTorch.
Output linear(const Scope& scope, const Output& x, const Output& weight, const std::optional<Output>& bias = {},
              std::string_view name = "linear");

// Images are [batch, channels, height, width]. A pair may differ for rows and columns: {2, 1}.
struct Pair {
  std::array<int64_t, 2> values;
  Pair(int64_t both) : values{both, both} {}
  Pair(int64_t rows, int64_t columns) : values{rows, columns} {}
  std::vector<int64_t> list() const { return {values[0], values[1]}; }
};
struct Conv2dOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
};
// `weight` [outputs, inputs / groups, height, width], `bias` [outputs].
Output conv2d(const Scope& scope, const Output& x, const Output& weight, const std::optional<Output>& bias = {},
              const Conv2dOptions& options = {}, std::string_view name = "conv2d");

struct Pool2dOptions {
  std::optional<Pair> stride{};  // default: the kernel's size
  Pair padding = 0;
};
Output max_pool2d(const Scope& scope, const Output& x, Pair kernel_size, const Pool2dOptions& options = {},
                  std::string_view name = "max_pool2d");
Output avg_pool2d(const Scope& scope, const Output& x, Pair kernel_size, const Pool2dOptions& options = {},
                  std::string_view name = "avg_pool2d");

// Normalises over the last dimensions, those of `weight` and `bias`.
Output layer_norm(const Scope& scope, const Output& x, const Output& weight, const Output& bias, double eps = 1e-5,
                  std::string_view name = "layer_norm");

// The names of a layer's variables, and of a layer that is given no name, for checkpoints of programs that use
// TensorFlow's layers. Only names are affected. The weights of dense() have the shape that tf.layers uses; those of
// conv2d_layer() do not.
enum class LayerNames {
  kLonghaul,  // dense/{weights,bias}, conv2d/{weights,bias}, batch_norm/{weight,bias,running_mean,running_var}
  kTfLayers,  // dense/{kernel,bias}, conv2d/{kernel,bias}, batch_normalization/{gamma,beta,moving_mean,moving_variance}
  kSlim,      // fully_connected/{weights,biases}, Conv/{weights,biases}, BatchNorm/{gamma,beta,moving_mean,...}
};

// The variables of batch normalization: two that are trainable, and the statistics that it keeps for use after
// training, which are not. They are in the scope `name`, with names according to `names`.
struct BatchNormVariables {
  Variable weight, bias, running_mean, running_var;
};
BatchNormVariables batch_norm_variables(const Scope& scope, int64_t channels, DType dtype = kFloat,
                                        std::string_view name = "", LayerNames names = LayerNames::kLonghaul);
// Normalises over all dimensions but the second. In training it uses the statistics of the batch and, as in PyTorch,
// moves the running statistics by `momentum` towards them (with the unbiased variance). Otherwise it uses the running
// statistics.
Output batch_norm(const Scope& scope, const Output& x, const BatchNormVariables& variables, bool training,
                  double momentum = 0.1, double eps = 1e-5, std::string_view name = "batch_norm");

struct EmbeddingOptions {
  // If true, the gradient of the table has only the rows that were looked up (IndexedSlices), like that of TensorFlow's
  // embedding_lookup(): the optimizers then leave the other rows, and their slots, unchanged. If false, the gradient
  // has all rows, and those that were not looked up are trained with zeros, so a momentum continues to move them.
  bool sparse_gradient = false;
};
// The rows of `weight` [count, width] at the int64 `indices`. InvalidArgumentError: a sparse gradient is requested, but
// `weight` is not a variable, and the tensors from which it is computed would get a gradient of all rows anyway.
Output embedding(const Scope& scope, const Output& weight, const Output& indices, const EmbeddingOptions& options = {},
                 std::string_view name = "embedding");

// Sets each element to 0 with probability p, and divides the others by 1 - p.
Output dropout(const Scope& scope, const Output& x, double p = 0.5, std::string_view name = "dropout");

// Layers. Their variables are "NAME/weights" and "NAME/bias", or have names according to `names`. dense maps x [batch,
// inputs] to [batch, units]; glorot_uniform initialises the weights [inputs, units], and the bias is 0.
Output dense(const Scope& scope, const Output& x, int64_t units, std::string_view name = "",
             LayerNames names = LayerNames::kLonghaul);
// x is [batch, channels, height, width]; he_normal initialises the weights [filters, channels / groups, height, width],
// and the bias is 0.
Output conv2d_layer(const Scope& scope, const Output& x, int64_t filters, Pair kernel_size,
                    const Conv2dOptions& options = {}, std::string_view name = "",
                    LayerNames names = LayerNames::kLonghaul);

}  // namespace longhaul::ops
