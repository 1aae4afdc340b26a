#include "longhaul/io/crc32c.h"

#include <isa-l/crc.h>

#include <algorithm>

namespace longhaul {

namespace {

constexpr size_t kChunkBytes = size_t{1} << 30;  // crc32_iscsi takes an int

}  // namespace

uint32_t extend_crc32c(uint32_t crc, std::string_view data) {
  uint32_t state = ~crc;
  while (!data.empty()) {
    size_t count = std::min(data.size(), kChunkBytes);
    auto* bytes = reinterpret_cast<unsigned char*>(const_cast<char*>(data.data()));
    state = crc32_iscsi(bytes, static_cast<int>(count), state);
    data.remove_prefix(count);
  }
  return ~state;
}

uint32_t crc32c(std::string_view data) {
  return extend_crc32c(0, data);
}

}  // namespace longhaul
