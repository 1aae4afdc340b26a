#include "longhaul/io/records/crc64.h"

#include <isa-l/crc64.h>

namespace longhaul {

uint64_t extend_crc64(uint64_t crc, std::string_view data) {
  return crc64_ecma_refl(crc, reinterpret_cast<const unsigned char*>(data.data()), data.size());
}

uint64_t crc64(std::string_view data) {
  return extend_crc64(0, data);
}

}  // namespace longhaul
