#pragma once

#include <cstdint>
#include <string_view>

namespace longhaul {

// CRC-64/XZ (the polynomial of ECMA-182, reflected), as in xz: a 64-bit digest for comparing two runs. It does not
// protect against deliberate changes.
uint64_t crc64(std::string_view data);

// The CRC of a followed by b, from the CRC of a: extend_crc64(crc64(a), b) == crc64(a + b).
uint64_t extend_crc64(uint64_t crc, std::string_view data);

}  // namespace longhaul
