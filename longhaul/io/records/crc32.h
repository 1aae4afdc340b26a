#pragma once

#include <cstdint>
#include <string_view>

namespace longhaul {

// CRC-32 of zip, gzip and PNG (the reflected polynomial 0xedb88320). It finds damage, not deliberate changes.
uint32_t crc32(std::string_view data);

// The CRC of a followed by b, from the CRC of a: extend_crc32(crc32(a), b) == crc32(a + b).
uint32_t extend_crc32(uint32_t crc, std::string_view data);

}  // namespace longhaul
