#pragma once

#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The elements of a tensor.
template <typename T>
std::vector<T> list(const Tensor& tensor) {
  return {tensor.flat<T>().begin(), tensor.flat<T>().end()};
}

}  // namespace longhaul
