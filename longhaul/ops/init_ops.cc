#include "longhaul/ops/init_ops.h"

#include <algorithm>
#include <cmath>

#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/math_ops.h"
#include "longhaul/ops/training/hyperparameter.h"

namespace longhaul::ops {
namespace {

Output filled(const Scope& scope, const char* type, const Shape& shape, DType dtype, std::string_view name) {
  return aten(scope, type, name, {{"size", shape.dims()}, {"dtype", dtype}}).output();
}

// How many inputs an output of the layer has, and the other way round.
struct Fans {
  double in = 1, out = 1;
};
Fans fans_of(const Shape& shape) {
  if (shape.rank() < 2) {
    const double count = shape.rank() == 1 ? static_cast<double>(shape.dim(0)) : 1;
    return {count, count};
  }
  double field = 1;
  for (int i = 2; i < shape.rank(); ++i) field *= static_cast<double>(shape.dim(i));
  const auto first = static_cast<double>(shape.dim(0)), second = static_cast<double>(shape.dim(1));
  return shape.rank() == 2 ? Fans{first, second} : Fans{second * field, first * field};
}

double fan_of(const Shape& shape, VarianceScaling::Mode mode) {
  const Fans fans = fans_of(shape);
  switch (mode) {
    case VarianceScaling::Mode::kFanIn: return fans.in;
    case VarianceScaling::Mode::kFanOut: return fans.out;
    case VarianceScaling::Mode::kFanAverage: break;
  }
  return (fans.in + fans.out) / 2;
}

// Of a normal distribution of deviation 1 without what is more than two deviations away.
constexpr double kTruncatedDeviation = 0.87962566103423978;

}  // namespace

Output zeros(const Scope& scope, const Shape& shape, DType dtype, std::string_view name) {
  return filled(scope, "aten::zeros", shape, dtype, name);
}
Output ones(const Scope& scope, const Shape& shape, DType dtype, std::string_view name) {
  return filled(scope, "aten::ones", shape, dtype, name);
}
Output full(const Scope& scope, const Shape& shape, double value, DType dtype, std::string_view name) {
  return aten(scope, "aten::full", name, {{"size", shape.dims()}, {"fill_value", value}, {"dtype", dtype}}).output();
}
Output randn(const Scope& scope, const Shape& shape, DType dtype, std::string_view name) {
  return filled(scope, "aten::randn.generator", shape, dtype, name);
}
Output rand(const Scope& scope, const Shape& shape, DType dtype, std::string_view name) {
  return filled(scope, "aten::rand.generator", shape, dtype, name);
}
Output uniform(const Scope& scope, const Shape& shape, double low, double high, DType dtype, std::string_view name) {
  const Scope inner = scope.sub(name);
  return add(inner, mul(inner, rand(inner, shape, dtype), high - low), low);
}

// By the inverse of the distribution function, so that nothing need be drawn twice.
Output truncated_normal(const Scope& scope, const Shape& shape, double stddev, DType dtype, std::string_view name) {
  const Scope inner = scope.sub(name);
  const double within = std::erf(std::sqrt(2.0));
  const Output spread = uniform(inner, shape, -within, within, dtype);
  return mul(inner, aten(inner, "aten::erfinv", "erfinv", {{"self", spread}}).output(), stddev * std::sqrt(2.0));
}

Output variance_scaling(const Scope& scope, const Shape& shape, const VarianceScaling& scaling, DType dtype,
                        std::string_view name) {
  check_argument(scaling.scale > 0, "variance_scaling", "scale", "above 0", scaling.scale);
  const double deviation = std::sqrt(scaling.scale / std::max(1.0, fan_of(shape, scaling.mode)));
  switch (scaling.distribution) {
    case VarianceScaling::Distribution::kTruncatedNormal:
      return truncated_normal(scope, shape, deviation / kTruncatedDeviation, dtype, name);
    case VarianceScaling::Distribution::kUntruncatedNormal: {
      const Scope inner = scope.sub(name);
      return mul(inner, randn(inner, shape, dtype), deviation);
    }
    case VarianceScaling::Distribution::kUniform: break;
  }
  const double limit = std::sqrt(3.0) * deviation;
  return uniform(scope, shape, -limit, limit, dtype, name);
}

Output glorot_uniform(const Scope& scope, const Shape& shape, DType dtype, std::string_view name) {
  return variance_scaling(
      scope, shape, {1, VarianceScaling::Mode::kFanAverage, VarianceScaling::Distribution::kUniform}, dtype, name);
}

Output he_normal(const Scope& scope, const Shape& shape, DType dtype, std::string_view name) {
  return variance_scaling(scope, shape, {.scale = 2}, dtype, name);
}

}  // namespace longhaul::ops
