#include "longhaul/checkpoint/bundle/piece_checksum.h"

#include <algorithm>

#include "longhaul/io/records/crc32c.h"

namespace longhaul {

void PieceChecksum::add(uint64_t begin, std::string_view bytes) {
  if (parts_.empty() || parts_.back().begin + parts_.back().size != begin) parts_.push_back({.begin = begin});
  Part& part = parts_.back();
  part.crc = extend_crc32c(part.crc, bytes);
  part.size += bytes.size();
}

void PieceChecksum::check(const StoredBytes& stored, const std::string& where) {
  std::ranges::sort(parts_, {}, &Part::begin);
  uint64_t size = 0;
  uint32_t crc = 0;
  for (const Part& part : parts_) {
    if (part.begin != size) break;
    crc = combine_crc32c(crc, part.crc, part.size);
    size += part.size;
  }
  if (size != stored.size) throw DataLossError(where + ": the data file ended while it was read");
  if (crc != stored.crc) throw_checksum_mismatch(where, "Checksum", stored.crc, crc);
}

}  // namespace longhaul
