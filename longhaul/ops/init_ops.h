#pragma once

#include <string_view>

#include "longhaul/graph/scope.h"

namespace longhaul::ops {

// Tensors of a fully defined shape. Random ones draw anew each time they run; each operation draws from a stream of its
// own, which follows from the graph's seed (Graph::set_seed) and the operation's name.

Output zeros(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "zeros");
Output ones(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "ones");
Output full(const Scope& scope, const Shape& shape, double value, DType dtype = kFloat, std::string_view name = "full");

// Normal with mean 0 and deviation 1, and uniform in [0, 1).
Output randn(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "randn");
Output rand(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "rand");
Output uniform(const Scope& scope, const Shape& shape, double low, double high, DType dtype = kFloat,
               std::string_view name = "uniform");
// Normal with mean 0, without what is more than two deviations away (`stddev` is that of the whole normal).
Output truncated_normal(const Scope& scope, const Shape& shape, double stddev = 1, DType dtype = kFloat,
                        std::string_view name = "truncated_normal");

// Weights at the start: matrices [inputs, outputs], or filters [outputs, inputs, ...] as conv2d takes them.
Output glorot_uniform(const Scope& scope, const Shape& shape, DType dtype = kFloat,
                      std::string_view name = "glorot_uniform");
Output he_normal(const Scope& scope, const Shape& shape, DType dtype = kFloat, std::string_view name = "he_normal");

}  // namespace longhaul::ops
