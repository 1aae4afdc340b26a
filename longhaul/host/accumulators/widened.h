#pragma once

#include <cstdint>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// The dtype in which gradients are added.
inline DType sum_dtype(DType dtype) {
  return dtype == kDouble ? kDouble : kFloat;
}

// Calls `body` with a null pointer to the C++ type of a floating dtype.
template <typename Body>
void with_type_of(DType dtype, Body&& body) {
  switch (dtype) {
    case kFloat: return body(static_cast<const float*>(nullptr));
    case kDouble: return body(static_cast<const double*>(nullptr));
    case kHalf: return body(static_cast<const Half*>(nullptr));
    case kBFloat16: return body(static_cast<const BFloat16*>(nullptr));
    default: throw InternalError(std::string("gradients cannot be ") + dtype_name(dtype));
  }
}

// The type in which values of type T are added.
template <typename T>
struct WideType {
  using type = float;
};
template <>
struct WideType<double> {
  using type = double;
};
template <typename T>
using Wide = typename WideType<T>::type;

// sum[i] += values[i]
template <typename T>
void add_into(const T* values, int64_t count, Wide<T>* sum) {
  for (int64_t i = 0; i < count; ++i) sum[i] += static_cast<Wide<T>>(values[i]);
}

// sum[i] /= divisor, rounded to T.
template <typename T>
void divide_into(const Wide<T>* sum, int64_t count, int64_t divisor, T* quotients) {
  const auto by = static_cast<Wide<T>>(divisor);
  for (int64_t i = 0; i < count; ++i) quotients[i] = static_cast<T>(sum[i] / by);
}

}  // namespace longhaul
