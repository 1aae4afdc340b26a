#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace longhaul {

// Writes at offsets of a file, several of them under way at a time. One thread at a time. Nothing is under way any more
// when the queue is destroyed: its owner has waited.
class WriteQueue {
 public:
  struct Finished {
    size_t tag = 0;
    ssize_t result = 0;  // bytes that were written, perhaps not all; or an errno, negative
  };

  virtual ~WriteQueue() = default;

  // Begins to write `pieces`, one after another, at `offset`. They, the bytes and the file stay until wait() has given
  // the tag back. Errors of the write itself are told by wait(); what is thrown here has begun nothing.
  virtual void submit(int fd, uint64_t offset, std::span<const iovec> pieces, size_t tag) = 0;

  // One of the writes under way, of which there is at least one, as soon as it is over: in any order.
  virtual Finished wait() = 0;
};

// At most `depth` writes are under way at a time.

// Through io_uring; nullptr where the kernel or the container refuses it.
std::unique_ptr<WriteQueue> make_uring_write_queue(size_t depth);

// Through `depth` threads of its own (lh-write-0, ...), which end with the queue.
std::unique_ptr<WriteQueue> make_threaded_write_queue(size_t depth);

// submit() writes at once, and lets the kernel begin to move what is in its cache to the disk.
std::unique_ptr<WriteQueue> make_plain_write_queue(size_t depth);

// The first of these that can be had.
std::unique_ptr<WriteQueue> make_write_queue(size_t depth);

}  // namespace longhaul
