#pragma once

#include <cstddef>
#include <cstdint>

#include "longhaul/tensor/tensor.h"

// Elements of any dtype in memory, including strings.
namespace longhaul {

// The size of an element in memory; for strings, of the std::string object.
size_t element_bytes(DType dtype);

// Copies consecutive elements.
void copy_elements(DType dtype, const void* from, void* to, size_t count);

// Copies `count` elements between tensors of one dtype.
void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index, int64_t count);

}  // namespace longhaul
