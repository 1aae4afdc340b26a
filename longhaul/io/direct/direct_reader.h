#pragma once

#include <functional>
#include <memory>
#include <span>

#include "longhaul/io/direct/io_queue.h"
#include "longhaul/io/direct/read_plan.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Options for how bytes are read from the disk; they never affect the bytes. The defaults are for programs, other
// values for tests and measurements.
struct DirectReaderOptions {
  size_t smallest_batch = size_t{1} << 20;  // smaller batches are read one after another, through the kernel's cache
  size_t in_flight = 16;                    // reads under way at a time
  bool direct = true;                       // false: through the kernel's cache even where O_DIRECT is available
  ReadPlanOptions plan{};                   // with O_DIRECT; without it, any alignment works
  std::function<std::unique_ptr<IoQueue>(size_t depth)> queue = make_io_queue;
};

// ReadableFile::read_batch() of a large batch: many reads at a time, bypassing the kernel's cache (O_DIRECT) and
// straight into the destination where the file system and the alignment allow it, otherwise through the cache. `fd` is
// the descriptor of `file`, open for reading. Bytes that such a read does not deliver (the file system refused it, a
// part of the disk is unreadable, the file ended) are read by file.read(), part by part, whose errors are reported.
//
// The buffers of a batch without destinations (a checkpoint that is read back) are kept for the next such batch, up to
// 16, because page faults in new memory with small pages cost as much CPU time as the reading itself.
void read_directly(const ReadableFile& file, int fd, std::span<const ReadRequest> requests,
                   const ReadableFile::UsePart& use, const DirectReaderOptions& options = {});

}  // namespace longhaul
