#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "longhaul/console/checkpoints/tensor_source.h"
#include "longhaul/console/text/report.h"
#include "longhaul/tensor/dtype.h"

namespace longhaul::console {

// Whether its elements are numbers that can be ordered: no strings, complex numbers or handles.
bool has_numbers(DType dtype);

template <typename T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return static_cast<double>(value);
  }
}

// A number of a tensor as it is: a double does not have all integers of 64 bits.
using Number = std::variant<double, int64_t, uint64_t>;

template <typename T>
Number as_number(T value) {
  if constexpr (!std::is_integral_v<T>) {
    return as_double(value);
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<int64_t>(value);
  } else {
    return static_cast<uint64_t>(value);
  }
}

// Integers with all of their digits, others with so many.
std::string number_text(const Number& number, int digits = 6);
Json number_json(const Number& number);

// Calls visit(T{}) with the type of the elements of a dtype for which has_numbers(); of bools, uint8_t, since a file
// may have others than 0 and 1.
template <typename Visit>
auto with_type_of(DType dtype, const Visit& visit) {
  switch (dtype) {
    case kFloat: return visit(float{});
    case kDouble: return visit(double{});
    case kHalf: return visit(Half{});
    case kBFloat16: return visit(BFloat16{});
    case kInt8: return visit(int8_t{});
    case kInt16: return visit(int16_t{});
    case kInt32: return visit(int32_t{});
    case kInt64: return visit(int64_t{});
    case kUInt16: return visit(uint16_t{});
    case kUInt32: return visit(uint32_t{});
    case kUInt64: return visit(uint64_t{});
    default: return visit(uint8_t{});
  }
}

// Of the numbers of a tensor. NaN counts in none but its own count, an infinity in those of the extremes too.
struct TensorStatistics {
  uint64_t count = 0, nans = 0, infinities = 0, zeros = 0;
  double minimum = INFINITY, maximum = -INFINITY;
  Number exact_minimum = 0.0, exact_maximum = 0.0;  // the same; integers are not rounded
  double mean = 0;                                  // of the finite ones

  bool has_extremes() const { return minimum <= maximum; }
};

// Reads the tensor once, a piece at a time. Its dtype must have numbers. `progress`: the bytes that were read.
TensorStatistics statistics_of(const TensorSource& source, const StoredTensor& tensor,
                               const std::function<void(uint64_t bytes)>& progress = {});

// How many of its finite numbers are in each of `count` equally wide ranges from the minimum to the maximum, which must
// be finite. Reads it once more.
std::vector<uint64_t> histogram_of(const TensorSource& source, const StoredTensor& tensor,
                                   const TensorStatistics& statistics, size_t count);

}  // namespace longhaul::console
