#include "longhaul/tensor/dtype.h"

#include <bit>
#include <cmath>

namespace longhaul {
namespace {

struct DTypeInfo {
  DType dtype;
  const char* name;
  size_t size;
};
constexpr DTypeInfo kDTypes[] = {
    {kFloat, "float", 4},       {kDouble, "double", 8},
    {kInt32, "int32", 4},       {kUInt8, "uint8", 1},
    {kInt16, "int16", 2},       {kInt8, "int8", 1},
    {kString, "string", 0},     {kComplex64, "complex64", 8},
    {kInt64, "int64", 8},       {kBool, "bool", 1},
    {kBFloat16, "bfloat16", 2}, {kUInt16, "uint16", 2},
    {kUInt32, "uint32", 4},     {kComplex128, "complex128", 16},
    {kHalf, "half", 2},         {kUInt64, "uint64", 8},
};

const DTypeInfo* find_info(int number) {
  for (const DTypeInfo& info : kDTypes) {
    if (info.dtype == number) return &info;
  }
  return nullptr;
}

}  // namespace

// IEEE 754 binary16. Overflow gives infinity; results below the normal range are rounded to a multiple of 2^-24.
Half::Half(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000);
  const float magnitude = std::fabs(value);
  if (std::isnan(value)) {
    bits = sign | 0x7e00;
  } else if (magnitude >= 65520.0f) {
    bits = sign | 0x7c00;
  } else if (magnitude < 6.103515625e-05f) {  // 2^-14, the smallest normal number
    bits = sign | static_cast<uint16_t>(std::nearbyint(magnitude * 16777216.0f));
  } else {
    uint32_t rounded = std::bit_cast<uint32_t>(magnitude);
    rounded += 0xfff + ((rounded >> 13) & 1);
    bits = sign | static_cast<uint16_t>((rounded >> 13) - (112 << 10));
  }
}

Half::operator float() const {
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t mantissa = bits & 0x3ff;
  float magnitude;
  if (exponent == 0) {
    magnitude = static_cast<float>(mantissa) / 16777216.0f;
  } else if (exponent == 31) {
    magnitude = std::bit_cast<float>(0x7f800000u | (mantissa << 13));
  } else {
    magnitude = std::bit_cast<float>(((exponent + 112) << 23) | (mantissa << 13));
  }
  return (bits & 0x8000) != 0 ? -magnitude : magnitude;
}

BFloat16::BFloat16(float value) {
  uint32_t word = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) {
    bits = static_cast<uint16_t>((word >> 16) | 0x40);
  } else {
    word += 0x7fff + ((word >> 16) & 1);
    bits = static_cast<uint16_t>(word >> 16);
  }
}

BFloat16::operator float() const {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

size_t dtype_size(DType dtype) {
  const DTypeInfo* info = find_info(dtype);
  return info != nullptr ? info->size : 0;
}

bool is_floating(DType dtype) {
  return dtype == kFloat || dtype == kDouble || dtype == kHalf || dtype == kBFloat16;
}

bool is_integer(DType dtype) {
  switch (dtype) {
    case kInt8:
    case kInt16:
    case kInt32:
    case kInt64:
    case kUInt8:
    case kUInt16:
    case kUInt32:
    case kUInt64: return true;
    default: return false;
  }
}

bool is_known_dtype(int number) {
  return find_info(number) != nullptr;
}

const char* dtype_name(DType dtype) {
  const DTypeInfo* info = find_info(dtype);
  if (info != nullptr) return info->name;
  return dtype == kResource ? "resource" : "invalid";
}

std::optional<DType> find_dtype(std::string_view name) {
  for (const DTypeInfo& info : kDTypes) {
    if (name == info.name) return info.dtype;
  }
  return std::nullopt;
}

}  // namespace longhaul
