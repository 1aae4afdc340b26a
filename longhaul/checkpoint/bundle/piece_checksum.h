#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/checkpoint/bundle/string_tensor.h"

namespace longhaul {

// The checksum of bytes that arrive in parts, in any order. One thread at a time may call.
class PieceChecksum {
 public:
  void add(uint64_t begin, std::string_view bytes);

  // DataLossError, which begins with `where`: parts are missing, or are not what was stored.
  void check(const StoredBytes& stored, const std::string& where);

 private:
  struct Part {
    uint64_t begin = 0;
    uint64_t size = 0;
    uint32_t crc = 0;
  };

  std::vector<Part> parts_;  // consecutive ones are joined
};

}  // namespace longhaul
