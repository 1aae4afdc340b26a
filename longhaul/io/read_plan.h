#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// A part of a request, `at` bytes behind the start of the transfer that brings it.
struct PlannedPart {
  size_t request = 0;
  size_t begin = 0;
  size_t size = 0;
  size_t at = 0;
};

// One read of a file. The first `straight` bytes go to where they are wanted, and are those of the only part; the
// others go through a buffer of the reader's.
struct PlannedRead {
  uint64_t offset = 0;
  size_t size = 0;
  size_t straight = 0;
  std::vector<PlannedPart> parts;
};

struct ReadPlanOptions {
  size_t alignment = 4096;  // of each read in the file, and of the memory it goes to; 1: any will do
  size_t block_bytes = size_t{16} << 20;
  size_t window_bytes = size_t{4} << 20;  // of a read that goes through a buffer
};

// The reads that bring all requests, in the order of the file. What is large and lies at the same alignment in the file
// and in memory comes in blocks, straight. All else (small requests, memory that is not aligned, what is only shown)
// comes in windows, each of which brings the parts of all requests that lie in it.
std::vector<PlannedRead> plan_reads(std::span<const ReadRequest> requests, const ReadPlanOptions& options);

}  // namespace longhaul
