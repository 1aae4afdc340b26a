#pragma once

#include <ATen/core/Tensor.h>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// Conversions between Tensor and at::Tensor. Both share the bytes. A Tensor made from an at::Tensor converts back to
// that at::Tensor.

// nullopt: ATen 1.13 lacks the dtype (string, uint16, uint32, uint64).
std::optional<at::ScalarType> find_scalar_type(DType dtype);
// InvalidArgumentError: Tensor lacks the dtype (a quantized one).
DType dtype_of(at::ScalarType type);

// A tensor that is not contiguous, or not in host memory, is copied.
Tensor to_tensor(const at::Tensor& tensor);
// InvalidArgumentError: ATen lacks the dtype.
at::Tensor to_aten(const Tensor& tensor);

Shape shape_of(const at::Tensor& tensor);

}  // namespace longhaul
