#pragma once

#include <cstdint>
#include <cstring>
#include <string>

// Fixed-width numbers, as in checkpoint files (for variable-width ones, see base/varint.h). The machine is
// little-endian.
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

}  // namespace longhaul::wire
