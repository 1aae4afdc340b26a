#pragma once

#include <cstdint>
#include <string_view>

namespace longhaul {

// CRC-32C (Castagnoli), as iSCSI defines it: RFC 3720, section 12.1 and appendix B.4.
uint32_t crc32c(std::string_view data);

// The CRC of a followed by b, from the CRC of a: extend_crc32c(crc32c(a), b) == crc32c(a + b).
uint32_t extend_crc32c(uint32_t crc, std::string_view data);

// The same from the CRCs of both and the size of b, so that parts can be processed in any order:
// combine_crc32c(crc32c(a), crc32c(b), b.size()) == crc32c(a + b). Takes less than a microsecond.
uint32_t combine_crc32c(uint32_t crc_a, uint32_t crc_b, uint64_t size_b);

// Stored checksums are masked, since the CRC of bytes that contain their own CRC is a weak check.
// docs/formats/record.md
constexpr uint32_t mask_crc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}
constexpr uint32_t unmask_crc32c(uint32_t masked) {
  uint32_t rotated = masked - 0xa282ead8u;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace longhaul
