#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace longhaul {

// Reads or writes at an offset of a file: into or from `pieces`, one after another.
struct Transfer {
  enum class Kind { kRead, kWrite };

  Kind kind = Kind::kRead;
  int fd = -1;
  uint64_t offset = 0;
  std::span<const iovec> pieces;
};

// Reads and writes of files, several of them under way at a time. One thread at a time. Nothing is under way any more
// when the queue is destroyed: its owner has waited.
class IoQueue {
 public:
  struct Finished {
    size_t tag = 0;
    ssize_t result = 0;  // bytes that were read or written, perhaps not all; or an errno, negative
  };

  virtual ~IoQueue() = default;

  // Begins it. Its pieces, the bytes and the file stay until wait() has given the tag back. Errors of the read or the
  // write itself are told by wait(); what is thrown here has begun nothing.
  virtual void submit(const Transfer& transfer, size_t tag) = 0;

  // One of those under way, of which there is at least one, as soon as it is over: in any order.
  virtual Finished wait() = 0;

  // One that is over by now; nullopt: none is.
  virtual std::optional<Finished> poll() = 0;
};

// At most `depth` are under way at a time.

// Through io_uring; nullptr where the kernel or the container refuses it.
std::unique_ptr<IoQueue> make_uring_queue(size_t depth);

// Through `depth` threads of its own (lh-io-0, ...), which end with the queue.
std::unique_ptr<IoQueue> make_threaded_queue(size_t depth);

// submit() reads or writes at once, and lets the kernel begin to move what was written from its cache to the disk.
std::unique_ptr<IoQueue> make_plain_queue(size_t depth);

// The first of these that can be had.
std::unique_ptr<IoQueue> make_io_queue(size_t depth);

}  // namespace longhaul
