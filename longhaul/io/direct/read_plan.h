#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// A part of a request, `at` bytes after the start of the read that delivers it.
struct PlannedPart {
  size_t request = 0;
  size_t begin = 0;
  size_t size = 0;
  size_t at = 0;
};

// One read of a file. The first `straight` bytes go directly to their destination, and are those of the only part; the
// others go through a buffer of the reader.
struct PlannedRead {
  uint64_t offset = 0;
  size_t size = 0;
  size_t straight = 0;
  std::vector<PlannedPart> parts;
};

struct ReadPlanOptions {
  size_t alignment = 4096;  // of each read in the file, and of its memory; 1: any
  size_t block_bytes = size_t{16} << 20;
  size_t window_bytes = size_t{4} << 20;  // for a read through a buffer
};

// The reads that deliver all requests, in file order. Large requests with the same alignment in the file and in memory
// are read directly, in blocks. All others (small requests, unaligned memory, requests without a destination) are read
// in windows, each of which delivers the parts of all requests that lie in it.
std::vector<PlannedRead> plan_reads(std::span<const ReadRequest> requests, const ReadPlanOptions& options);

}  // namespace longhaul
