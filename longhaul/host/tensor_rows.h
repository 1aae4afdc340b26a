#pragma once

#include <functional>
#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The rows of a tensor along its first dimension, sharing its bytes. InvalidArgumentError: a scalar.
std::vector<Tensor> rows_of(const Tensor& tensor);

// One tensor of `count` rows. Where `declared` has -1, rows may differ: each size is the largest among them, and what
// is missing is zero, an empty string or false. The rows fit `declared`, which has a known rank.
Tensor stack_rows(size_t count, const std::function<const Tensor&(size_t)>& row, DType dtype, const Shape& declared);

}  // namespace longhaul
