#include "longhaul/host/parsing/decode_raw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "longhaul/host/parsing/parse_number.h"

namespace longhaul {
namespace {

// Bytes that are turned round together: a complex number's halves each for itself.
size_t swapped_size(DType dtype) {
  return dtype == kComplex64 || dtype == kComplex128 ? dtype_size(dtype) / 2 : dtype_size(dtype);
}

void swap_bytes(char* bytes, size_t count, size_t size) {
  for (size_t i = 0; i + size <= count; i += size) std::reverse(bytes + i, bytes + i + size);
}

// A bool must be 0 or 1.
void make_bools(char* bytes, size_t count) {
  for (size_t i = 0; i < count; ++i) bytes[i] = bytes[i] != 0;
}

template <typename T>
Tensor numbers_of(const Tensor& strings) {
  Tensor numbers(kDTypeOf<T>, strings.shape());
  const auto texts = strings.flat<std::string>();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto number = parse_number<T>(texts[i]);
    if (!number) {
      throw InvalidArgumentError(
          fmt::format("\"{}\" is not a valid {}", texts[i].substr(0, 40), dtype_name(kDTypeOf<T>)));
    }
    numbers.mutable_flat<T>()[i] = *number;
  }
  return numbers;
}

}  // namespace

Tensor decode_raw(const Tensor& strings, DType dtype, bool little_endian) {
  const auto texts = strings.flat<std::string>();
  const size_t size = dtype_size(dtype), length = texts.empty() ? 0 : texts[0].size();
  if (size == 0) throw InvalidArgumentError(fmt::format("bytes cannot be decoded as {}", dtype_name(dtype)));
  if (length % size != 0) {
    throw InvalidArgumentError(fmt::format("the strings have {} bytes, which is not a multiple of {}, the size of {}",
                                           length, size, dtype_name(dtype)));
  }
  std::vector<int64_t> dims = strings.shape().dims();
  dims.push_back(static_cast<int64_t>(length / size));
  Tensor numbers(dtype, Shape(std::move(dims)));
  char* out = static_cast<char*>(numbers.mutable_data());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].size() != length) {
      throw InvalidArgumentError(
          fmt::format("all strings must have the same length, but string {} has {} bytes and the first has {}", i,
                      texts[i].size(), length));
    }
    if (length > 0) std::memcpy(out + i * length, texts[i].data(), length);
  }
  if (!little_endian) swap_bytes(out, texts.size() * length, swapped_size(dtype));
  if (dtype == kBool) make_bools(out, texts.size() * length);
  return numbers;
}

Tensor string_to_number(const Tensor& strings, DType dtype) {
  switch (dtype) {
    case kFloat: return numbers_of<float>(strings);
    case kDouble: return numbers_of<double>(strings);
    case kInt32: return numbers_of<int32_t>(strings);
    case kInt64: return numbers_of<int64_t>(strings);
    default: throw InvalidArgumentError(fmt::format("strings cannot be converted to {}", dtype_name(dtype)));
  }
}

}  // namespace longhaul
