#include "longhaul/tensor/elements.h"

#include <algorithm>
#include <cstring>

namespace longhaul {

size_t element_bytes(DType dtype) {
  return dtype == kString ? sizeof(std::string) : dtype_size(dtype);
}

void copy_elements(DType dtype, const void* from, void* to, size_t count) {
  if (dtype == kString) {
    std::copy_n(static_cast<const std::string*>(from), count, static_cast<std::string*>(to));
  } else if (count > 0) {
    std::memcpy(to, from, count * dtype_size(dtype));
  }
}

void copy_elements(const Tensor& from, int64_t from_index, Tensor& to, int64_t to_index, int64_t count) {
  const auto size = static_cast<int64_t>(element_bytes(from.dtype()));
  copy_elements(from.dtype(), static_cast<const char*>(from.data()) + from_index * size,
                static_cast<char*>(to.mutable_data()) + to_index * size, static_cast<size_t>(count));
}

}  // namespace longhaul
