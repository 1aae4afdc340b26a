#include "longhaul/ops/training/clip_ops.h"

#include <fmt/format.h>

#include <functional>

#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/aten_op.h"
#include "longhaul/ops/indexed_slices.h"
#include "longhaul/ops/math_ops.h"

namespace longhaul::ops {
namespace {

// What is measured and scaled of a gradient of some rows: their values, as they are.
Output values_of(const Output& x) {
  const std::optional<IndexedSlices> slices = indexed_slices_of(x);
  return slices ? slices->values : x;
}

// What `clip` makes of a tensor, or of the values of a gradient of some rows, which stays one.
Output clip_values(const Scope& scope, const Output& x, const std::function<Output(const Output&)>& clip) {
  const std::optional<IndexedSlices> slices = indexed_slices_of(x);
  return slices ? with_values(scope, *slices, clip(slices->values)) : clip(x);
}

// Not one for each element.
bool is_one_number(const Hyperparameter& limit) {
  return limit.number() != nullptr || limit.tensor()->shape() == Shape{};
}

Output norm_of(const Scope& scope, const Output& x, const std::vector<int64_t>& axes = {}) {
  NamedArgs arguments = {{"self", x}};
  if (!axes.empty()) arguments.insert(arguments.end(), {{"dim", axes}, {"keepdim", true}});
  if (x.dtype() == kHalf || x.dtype() == kBFloat16) arguments.push_back({"dtype", kFloat});
  return aten(scope, "aten::linalg_vector_norm", "norm", arguments).output();
}

Output number_of_elements(const Scope& scope, const Output& x) {
  return aten(scope, "aten::prod", "size", {{"self", shape(scope, x)}}).output();
}

void check_clip_norm(const char* function, const Hyperparameter& clip_norm) {
  if (const double* number = clip_norm.number()) check_argument(*number > 0, function, "clip_norm", "above 0", *number);
}

// 1 where the norm is within the limit, else what brings it down to there.
Output factor(const Scope& scope, const Output& norm, const Hyperparameter& clip_norm) {
  const Output limit = clip_norm.as_tensor(scope, norm.dtype(), "clip_norm");
  return div(scope, limit, maximum(scope, norm, limit));
}

Output scaled(const Scope& scope, const Output& x, const Output& factor) {
  const Output product = mul(scope, x, factor);
  return product.dtype() == x.dtype() ? product : cast(scope, product, x.dtype());
}

}  // namespace

Output clip_by_value(const Scope& scope, const Output& x, const Hyperparameter& low, const Hyperparameter& high,
                     std::string_view name) {
  if (low.number() != nullptr && high.number() != nullptr) {
    if (!(*low.number() <= *high.number())) {
      throw InvalidArgumentError(
          fmt::format("clip_by_value: low must not be above high, but {} is above {}", *low.number(), *high.number()));
    }
    return clip_values(scope, x, [&](const Output& values) {
      return aten(scope, "aten::clamp", name, {{"self", values}, {"min", *low.number()}, {"max", *high.number()}})
          .output();
    });
  }
  const Scope inner = scope.sub(name);
  const auto clip = [&](const Output& values) {
    const Output lowered = minimum(inner, values, high.as_tensor(inner, x.dtype(), "high"));
    return maximum(inner, lowered, low.as_tensor(inner, x.dtype(), "low"));
  };
  return is_one_number(low) && is_one_number(high) ? clip_values(inner, x, clip) : clip(x);
}

Output clip_by_norm(const Scope& scope, const Output& x, const Hyperparameter& clip_norm,
                    const std::vector<int64_t>& axes, std::string_view name) {
  check_clip_norm("clip_by_norm", clip_norm);
  const Scope inner = scope.sub(name);
  return clip_values(inner, x, [&](const Output& values) {
    return scaled(inner, values, factor(inner, norm_of(inner, values, axes), clip_norm));
  });
}

Output clip_by_average_norm(const Scope& scope, const Output& x, const Hyperparameter& clip_norm,
                            std::string_view name) {
  check_clip_norm("clip_by_average_norm", clip_norm);
  const Scope inner = scope.sub(name);
  const Output average = div(inner, norm_of(inner, x), number_of_elements(inner, x));
  return scaled(inner, x, factor(inner, average, clip_norm));
}

Output global_norm(const Scope& scope, const std::vector<Output>& tensors, std::string_view name) {
  const Scope inner = scope.sub(name);
  std::vector<Output> norms;
  for (const Output& tensor : tensors) {
    if (tensor.valid()) norms.push_back(norm_of(inner, values_of(tensor)));
  }
  if (norms.empty()) throw InvalidArgumentError("global_norm: there are no tensors to compute the norm of");
  return norm_of(inner, stack(inner, norms));
}

std::pair<std::vector<Output>, Output> clip_by_global_norm(const Scope& scope, const std::vector<Output>& tensors,
                                                           const Hyperparameter& clip_norm, const Output& use_norm,
                                                           std::string_view name) {
  check_clip_norm("clip_by_global_norm", clip_norm);
  const Scope inner = scope.sub(name);
  const Output norm = use_norm.valid() ? use_norm : global_norm(inner, tensors);
  const Output zero_or_nan = sub(inner, norm, norm);
  const Output common = add(inner, factor(inner, norm, clip_norm), zero_or_nan);
  std::vector<Output> clipped;
  const auto scale = [&](const Output& values) { return scaled(inner, values, common); };
  for (const Output& tensor : tensors) clipped.push_back(tensor.valid() ? clip_values(inner, tensor, scale) : tensor);
  return {std::move(clipped), norm};
}

std::pair<std::vector<GradientAndVariable>, Output> clip_by_global_norm(const Scope& scope,
                                                                        std::vector<GradientAndVariable> gradients,
                                                                        const Hyperparameter& clip_norm,
                                                                        const Output& use_norm, std::string_view name) {
  std::vector<Output> tensors;
  for (const GradientAndVariable& pair : gradients) tensors.push_back(pair.gradient);
  const auto [clipped, norm] = clip_by_global_norm(scope, tensors, clip_norm, use_norm, name);
  for (size_t i = 0; i < clipped.size(); ++i) gradients[i].gradient = clipped[i];
  return {std::move(gradients), norm};
}

}  // namespace longhaul::ops
