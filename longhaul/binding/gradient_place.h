#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>

namespace longhaul {

// An element of a tensor that a gradient is for, and its bits: of a table, a step trains a few rows only. On the CPU.
struct GradientPlace {
  int64_t index;
  uint64_t bits;

  // The first element that `gradient`, which may be sparse, is not zero for; nothing, where there is none.
  static std::optional<GradientPlace> of(const at::Tensor& gradient, const at::Tensor& tensor);
  bool has_changed(const at::Tensor& tensor) const;
};

// Tells a gradient from another that takes its place; nullptr: there is none.
const void* gradient_memory(const at::Tensor& gradient);
// False where that cannot be told.
bool is_zero_gradient(const at::Tensor& gradient);

}  // namespace longhaul
