#pragma once

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tensor of rank r with n explicit elements: int64 indices [n, r], values [n], int64 dense_shape [r].
struct SparseTensor {
  Tensor indices, values, dense_shape;
};

// InvalidArgumentError: the parts are inconsistent, or an index is outside the shape.
void check_sparse(const SparseTensor& sparse);

// As strings: three TensorProtos, in a vector of 3.
Tensor serialize_sparse(const SparseTensor& sparse);

// Split along the first dimension: a row of 3 for each slice. InvalidArgumentError: the indices are not sorted by that
// dimension.
Tensor serialize_many_sparse(const SparseTensor& sparse);

// Joins rows of 3, [N, 3], along a new first dimension; the other dimensions get the largest sizes.
// InvalidArgumentError: malformed input, other dtypes, different ranks.
SparseTensor deserialize_many_sparse(const Tensor& serialized, DType dtype);

}  // namespace longhaul
