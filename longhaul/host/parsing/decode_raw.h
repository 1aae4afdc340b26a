#pragma once

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The bytes of strings, a tensor of any shape whose strings have equal lengths, as numbers; adds a dimension.
// InvalidArgumentError: the lengths differ, or are not a multiple of the dtype's size; the dtype has no fixed size.
Tensor decode_raw(const Tensor& strings, DType dtype, bool little_endian = true);

// Decimal texts as float, double, int32 or int64, in the same shape. InvalidArgumentError: one is not such a number.
Tensor string_to_number(const Tensor& strings, DType dtype);

}  // namespace longhaul
