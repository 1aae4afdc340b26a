#pragma once

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The bytes of strings, of any shape and of one length, as numbers: one more dimension. InvalidArgumentError: their
// lengths differ, or are no multiple of the dtype's size; the dtype has no fixed size.
Tensor decode_raw(const Tensor& strings, DType dtype, bool little_endian = true);

// Decimal texts as float, double, int32 or int64, in the same shape. InvalidArgumentError: one is none.
Tensor string_to_number(const Tensor& strings, DType dtype);

}  // namespace longhaul
