#pragma once

#include <vector>

#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The elements of a tensor of floats or doubles.
inline std::vector<double> doubles(const Tensor& tensor) {
  if (tensor.dtype() == kFloat) {
    const auto values = tensor.flat<float>();
    return {values.begin(), values.end()};
  }
  const auto values = tensor.flat<double>();
  return {values.begin(), values.end()};
}

}  // namespace longhaul
