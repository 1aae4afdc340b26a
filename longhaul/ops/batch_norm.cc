#include <cmath>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/init_ops.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/nn_ops.h"

namespace longhaul::ops {
namespace {

const VariableOptions kNotTrained = {.trainable = false};

struct BatchNormNames {
  const char *layer, *weight, *bias, *mean, *variance;
};

BatchNormNames batch_norm_names(LayerNames names) {
  switch (names) {
    case LayerNames::kLonghaul: return {"batch_norm", "weight", "bias", "running_mean", "running_var"};
    case LayerNames::kTfLayers: return {"batch_normalization", "gamma", "beta", "moving_mean", "moving_variance"};
    case LayerNames::kSlim: return {"BatchNorm", "gamma", "beta", "moving_mean", "moving_variance"};
  }
  throw InternalError("unknown LayerNames");
}

// Values for each channel: all elements of x over the channels' number, as a number or a tensor.
Output unbiased(const Scope& scope, const Output& variance, const Output& x) {
  const Output sizes = shape(scope, x);
  const Output elements = cast(scope, aten(scope, "aten::prod", "elements", {{"self", sizes}}).output(), kDouble);
  const Output count = div(scope, elements, static_cast<double>(variance.shape().dim(0)));
  const Output factor = div(scope, count, sub(scope, count, 1.0));
  return mul(scope, variance, cast(scope, factor, variance.dtype()));
}

Operation move_towards(const Scope& scope, const Variable& running, const Output& value, double momentum) {
  return assign_add(scope, running, mul(scope, sub(scope, value, running), momentum)).op();
}

// native_batch_norm would write into the tensors of the running statistics, which others may hold; so it gets none.
Output train_batch_norm(const Scope& scope, const Output& x, const BatchNormVariables& variables, double momentum,
                        double eps) {
  const Operation norm = aten(scope, "aten::native_batch_norm", "native_batch_norm",
                              {{"input", x},
                               {"weight", variables.weight},
                               {"bias", variables.bias},
                               {"training", true},
                               {"momentum", momentum},
                               {"eps", eps}});
  const Output inverse_variance = square(scope, norm.output(2));
  const Output variance = sub(scope, div(scope, 1.0, inverse_variance), eps);
  const Operation mean_moved = move_towards(scope, variables.running_mean, norm.output(1), momentum);
  const Operation variance_moved = move_towards(scope, variables.running_var, unbiased(scope, variance, x), momentum);
  return identity(scope.with_control_dependencies({mean_moved, variance_moved}), norm.output());
}

}  // namespace

BatchNormVariables batch_norm_variables(const Scope& scope, int64_t channels, DType dtype, std::string_view name,
                                        LayerNames names) {
  const BatchNormNames called = batch_norm_names(names);
  const Scope inner = scope.sub(name.empty() ? called.layer : name);
  return {variable(inner, called.weight, ones(inner, {channels}, dtype)),
          variable(inner, called.bias, zeros(inner, {channels}, dtype)),
          variable(inner, called.mean, zeros(inner, {channels}, dtype), kNotTrained),
          variable(inner, called.variance, ones(inner, {channels}, dtype), kNotTrained)};
}

Output batch_norm(const Scope& scope, const Output& x, const BatchNormVariables& variables, bool training,
                  double momentum, double eps, std::string_view name) {
  const Scope inner = scope.sub(name);
  if (training) return train_batch_norm(inner, x, variables, momentum, eps);
  return aten(inner, "aten::native_batch_norm", "native_batch_norm",
              {{"input", x},
               {"weight", variables.weight},
               {"bias", variables.bias},
               {"running_mean", variables.running_mean},
               {"running_var", variables.running_var},
               {"training", false},
               {"momentum", momentum},
               {"eps", eps}})
      .output();
}

}  // namespace longhaul::ops
