#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Little-endian and base-128 numbers, as the checkpoint files have them. The machine is little endian.
namespace longhaul::wire {

template <typename T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

inline uint16_t byte_swapped(uint16_t value) {
  return __builtin_bswap16(value);
}
inline uint32_t byte_swapped(uint32_t value) {
  return __builtin_bswap32(value);
}
inline uint64_t byte_swapped(uint64_t value) {
  return __builtin_bswap64(value);
}

inline void append_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// Takes a number off the front of `text`. False, with `text` unchanged, if it does not hold a whole one that fits.
inline bool take_varint(std::string_view& text, uint64_t& value) {
  uint64_t result = 0;
  for (size_t i = 0; i < text.size() && i < 10; ++i) {
    const uint64_t byte = static_cast<unsigned char>(text[i]);
    if (i == 9 && byte > 1) return false;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      value = result;
      text.remove_prefix(i + 1);
      return true;
    }
  }
  return false;
}

}  // namespace longhaul::wire
