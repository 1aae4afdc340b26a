#pragma once

#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// Tensors of a fully defined shape. The random operations draw new numbers each time they run. Each has its own stream,
// determined by the graph's seed (Graph::set_seed) and the operation's name.

Output zeros(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "zeros");
Output ones(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "ones");
Output full(const Scope& scope, const Shape& shape, double value, DType dtype = kFloat, std::string_view name = "full");

// randn: normal with mean 0 and deviation 1. rand: uniform in [0, 1).
Output randn(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "randn");
Output rand(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "rand");
Output uniform(const Scope& scope, const Shape& shape, double low, double high, DType dtype = kFloat,
               std::string_view name = "uniform");
// Normal with mean 0, without values more than two deviations away (`stddev` is that of the untruncated distribution).
Output truncated_normal(const Scope& scope, const Shape& shape, double stddev = 1, DType dtype = kFloat,
                        std::string_view name = "truncated_normal");

// Initial weights: matrices [inputs, outputs], or conv2d's filters [outputs, inputs, ...].
//
// Their mean is 0 and their variance scale / n, where n is the number of inputs per output, or of outputs per input, or
// the mean of both. A truncated normal has that variance after truncation.
struct VarianceScaling {
  enum class Mode { kFanIn, kFanOut, kFanAverage };
  enum class Distribution { kTruncatedNormal, kUntruncatedNormal, kUniform };

  double scale = 1;  // above 0
  Mode mode = Mode::kFanIn;
  Distribution distribution = Distribution::kTruncatedNormal;
};
// InvalidArgumentError: the scale is not above 0.
Output variance_scaling(const Scope& scope, const Shape& shape, const VarianceScaling& scaling = {},
                        DType dtype = kFloat, std::string_view name = "variance_scaling");

// glorot_uniform: a scale of 1, kFanAverage, uniform (Glorot and Bengio, AISTATS 2010). he_normal: a scale of 2,
// kFanIn, a truncated normal (He et al., https://arxiv.org/abs/1502.01852).
Output glorot_uniform(const Scope& scope, const Shape& shape, DType dtype = kFloat,
                      std::string_view name = "glorot_uniform");
Output he_normal(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "he_normal");

}  // namespace longhaul::ops
