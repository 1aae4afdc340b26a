#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "longhaul/tensor/elements.h"
#include "longhaul/tensor/tensor.h"

// Tensors of any dtype, strings as well, taken apart and joined along their first dimension.
namespace longhaul {

// Elements of one row.
int64_t row_elements(const Tensor& tensor);

// The rows of those numbers, as a tensor of these rows. InvalidArgumentError: there is no such row.
Tensor gather_rows(const Tensor& tensor, std::span<const int64_t> rows);

// Tensors of one dtype and shape joined along a new dimension, `axis` (from 0 on, or from the end: -1) of the result.
// InvalidArgumentError: they differ, there are none, or no such axis.
Tensor pack(std::span<const Tensor> parts, int64_t axis);

// The numbers 0 to count - 1 in a random order, each as likely as any other; the same on every machine.
std::vector<int64_t> random_order(int64_t count, std::mt19937_64& random);

// Integers of either width. InvalidArgumentError: the tensor is neither int32 nor int64.
std::vector<int64_t> to_int64s(const Tensor& tensor);

}  // namespace longhaul
