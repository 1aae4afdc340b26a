#pragma once

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A tensor of rank r of which n elements are named: int64 indices [n, r], values [n], int64 dense_shape [r].
struct SparseTensor {
  Tensor indices, values, dense_shape;
};

// InvalidArgumentError: the parts do not fit together, or an index is outside of the shape.
void check_sparse(const SparseTensor& sparse);

// As strings: three TensorProtos, in a vector of 3.
Tensor serialize_sparse(const SparseTensor& sparse);

// Taken apart along the first dimension: a row of 3 for each. InvalidArgumentError: the indices are not sorted by it.
Tensor serialize_many_sparse(const SparseTensor& sparse);

// Rows of 3, [N, 3], joined along a new first dimension; the others are as large as the largest. InvalidArgumentError:
// something else, other dtypes, different ranks.
SparseTensor deserialize_many_sparse(const Tensor& serialized, DType dtype);

}  // namespace longhaul
