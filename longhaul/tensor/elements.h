#pragma once

#include <cstddef>
#include <cstdint>

#include "longhaul/tensor/tensor.h"

// Elements of any dtype in memory, strings as well.
namespace longhaul {

// Of an element in memory; a string is an object.
size_t element_bytes(DType dtype);

// Copies elements that follow each other.
void copy_elements(DType dtype, const void* from, void* to, size_t count);

// Copies `count` elements between tensors of one dtype.
void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index, int64_t count);

}  // namespace longhaul
