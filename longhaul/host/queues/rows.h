#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "longhaul/tensor/elements.h"
#include "longhaul/tensor/tensor.h"

// Splits and joins tensors of any dtype, including strings, along their first dimension.
namespace longhaul {

// The number of elements in one row.
int64_t row_elements(const Tensor& tensor);

// A tensor of the rows with those indices. InvalidArgumentError: there is no such row.
Tensor gather_rows(const Tensor& tensor, std::span<const int64_t> rows);

// Joins tensors of the same dtype and shape along a new dimension, `axis` of the result (from 0 on, or -1 for the last,
// and so on). InvalidArgumentError: they differ, there are none, or there is no such axis.
Tensor pack(std::span<const Tensor> parts, int64_t axis);

// The numbers 0 to count - 1 in a random order, all orders equally likely; the same on every machine.
std::vector<int64_t> random_order(int64_t count, std::mt19937_64& random);

// Converts int32 or int64. InvalidArgumentError: the tensor is neither.
std::vector<int64_t> to_int64s(const Tensor& tensor);

}  // namespace longhaul
