#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace longhaul {

// An element of a tensor at which its gradient is not zero, and its bits: a step trains only a few rows of a table. On
// the CPU.
struct GradientPlace {
  int64_t index;
  uint64_t bits;

  // The first element for which `gradient`, which may be sparse, is not zero; nullopt: none.
  static std::optional<GradientPlace> of(const at::Tensor& gradient, const at::Tensor& tensor);
  bool has_changed(const at::Tensor& tensor) const;
};

// Distinguishes a gradient from another one that replaces it; nullptr: no gradient.
const void* gradient_memory(const at::Tensor& gradient);
// False if that is not known.
bool is_zero_gradient(const at::Tensor& gradient);

}  // namespace longhaul
