#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// Base-128 numbers: seven bits to a byte, lowest first; the eighth bit says that more bytes follow. Used by protocol
// buffers and by the tables of checkpoints.
namespace longhaul {

inline void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

namespace internal {

inline bool take_long_varint(std::string_view& text, uint64_t& value) {
  constexpr size_t kMostBytes = 10;
  uint64_t result = 0;
  for (size_t i = 0; i < text.size() && i < kMostBytes; ++i) {
    const uint64_t byte = static_cast<unsigned char>(text[i]);
    if (i == kMostBytes - 1 && byte > 1) return false;  // bit 63 is the last
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      value = result;
      text.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace internal

// Takes a number off the front of `text`. False, with both unchanged, if it does not hold a complete one that fits into
// 64 bits. Most numbers take one byte; only that case is inlined.
inline bool take_varint(std::string_view& text, uint64_t& value) {
  if (!text.empty() && static_cast<unsigned char>(text[0]) < 0x80) {
    value = static_cast<unsigned char>(text[0]);
    text.remove_prefix(1);
    return true;
  }
  return internal::take_long_varint(text, value);
}

}  // namespace longhaul
