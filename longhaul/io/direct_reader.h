#pragma once

#include <functional>
#include <memory>
#include <span>

#include "longhaul/io/file.h"
#include "longhaul/io/io_queue.h"
#include "longhaul/io/read_plan.h"

namespace longhaul {

// How the bytes come from the disk, never which: the defaults are for programs, the rest for tests and measurements.
struct DirectReaderOptions {
  size_t smallest_batch = size_t{1} << 20;  // what is less is read in turn, through the kernel's cache
  size_t in_flight = 16;                    // reads under way at a time
  bool direct = true;                       // false: through the kernel's cache even where O_DIRECT can be had
  ReadPlanOptions plan;                     // with O_DIRECT; without it, any alignment will do
  std::function<std::unique_ptr<IoQueue>(size_t depth)> queue = make_io_queue;
};

// ReadableFile::read_batch() of a large batch: many reads at a time, past the kernel's cache (O_DIRECT) and straight to
// where the bytes are wanted, where the file system and their places allow it; through the cache where not. `fd` is the
// descriptor of `file`, open for reading. What such a read did not bring (the file system refused it, a part of the
// disk cannot be read, the file ended) is asked of file.read(), part by part, and its errors are the ones that are
// told.
//
// The windows of a batch that is only shown (a checkpoint that is read back) are kept for the next such one, up to 16,
// since the page faults of new memory, if it is of small pages, cost the processor as much again as the reading.
void read_directly(const ReadableFile& file, int fd, std::span<const ReadRequest> requests,
                   const ReadableFile::UsePart& use, const DirectReaderOptions& options = {});

}  // namespace longhaul
