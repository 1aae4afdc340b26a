#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longhaul {

// Element types. They have TensorFlow's numbers (types.proto), as in files.
enum DType : int {
  kInvalid = 0,
  kFloat = 1,
  kDouble = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBFloat16 = 14,
  kUInt16 = 17,
  kComplex128 = 18,
  kHalf = 19,
  kResource = 20,  // a handle to a queue, a table, ...; the dtype of outputs only, never of a tensor
  kUInt32 = 22,
  kUInt64 = 23,
};

// The bits of 16-bit floats. The conversions round to nearest, ties to even.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  explicit Half(float value);
  explicit operator float() const;
  bool operator==(const Half&) const = default;
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  explicit BFloat16(float value);
  explicit operator float() const;
  bool operator==(const BFloat16&) const = default;
};

// The size of one element in bytes; 0 for strings and for kInvalid.
size_t dtype_size(DType dtype);
bool is_floating(DType dtype);  // half, bfloat16, float, double
bool is_integer(DType dtype);   // all widths, signed or unsigned; not bool

// True for the numbers above except kInvalid: a file may contain them, and the library supports them.
bool is_known_dtype(int number);

// "float", "int64", "string", ... (TensorFlow's short names) and back.
const char* dtype_name(DType dtype);
std::optional<DType> find_dtype(std::string_view name);

// kFloat for float, and so on; kString for std::string.
template <typename T>
struct DTypeOf;
#define LONGHAUL_DTYPE_OF(Type, number)    \
  template <>                              \
  struct DTypeOf<Type> {                   \
    static constexpr DType value = number; \
  }
LONGHAUL_DTYPE_OF(float, kFloat);
LONGHAUL_DTYPE_OF(double, kDouble);
LONGHAUL_DTYPE_OF(int32_t, kInt32);
LONGHAUL_DTYPE_OF(uint8_t, kUInt8);
LONGHAUL_DTYPE_OF(int16_t, kInt16);
LONGHAUL_DTYPE_OF(int8_t, kInt8);
LONGHAUL_DTYPE_OF(std::string, kString);
LONGHAUL_DTYPE_OF(std::complex<float>, kComplex64);
LONGHAUL_DTYPE_OF(int64_t, kInt64);
LONGHAUL_DTYPE_OF(bool, kBool);
LONGHAUL_DTYPE_OF(BFloat16, kBFloat16);
LONGHAUL_DTYPE_OF(uint16_t, kUInt16);
LONGHAUL_DTYPE_OF(std::complex<double>, kComplex128);
LONGHAUL_DTYPE_OF(Half, kHalf);
LONGHAUL_DTYPE_OF(uint32_t, kUInt32);
LONGHAUL_DTYPE_OF(uint64_t, kUInt64);
#undef LONGHAUL_DTYPE_OF
template <typename T>
inline constexpr DType kDTypeOf = DTypeOf<T>::value;

}  // namespace longhaul
