#include "longhaul/io/records/crc32.h"

#include <isa-l/crc.h>

namespace longhaul {

uint32_t extend_crc32(uint32_t crc, std::string_view data) {
  return crc32_gzip_refl(crc, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

uint32_t crc32(std::string_view data) {
  return extend_crc32(0, data);
}

}  // namespace longhaul
