#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace longhaul {

// A read or write at an offset of a file, into or from `pieces` in order.
struct Transfer {
  enum class Kind { kRead, kWrite };

  Kind kind = Kind::kRead;
  int fd = -1;
  uint64_t offset = 0;
  std::span<const iovec> pieces;
};

// Reads and writes files, with several transfers under way at a time. One thread at a time. The owner must wait for all
// transfers before it destroys the queue.
class IoQueue {
 public:
  struct Finished {
    size_t tag = 0;
    ssize_t result = 0;  // bytes read or written, perhaps not all; or a negative errno
  };

  virtual ~IoQueue() = default;

  // Begins a transfer. Its pieces, the bytes and the file must stay valid until wait() has returned the tag. Errors of
  // the transfer itself are reported by wait(); if this throws, nothing was begun.
  virtual void submit(const Transfer& transfer, size_t tag) = 0;

  // Waits for one of the transfers under way, of which there must be at least one; in any order.
  virtual Finished wait() = 0;

  // One that has finished by now; nullopt: none has.
  virtual std::optional<Finished> poll() = 0;
};

// At most `depth` are under way at a time.

// Through io_uring; nullptr where the kernel or the container refuses it.
std::unique_ptr<IoQueue> make_uring_queue(size_t depth);

// Through its own `depth` threads (lh-io-0, ...), which end with the queue.
std::unique_ptr<IoQueue> make_threaded_queue(size_t depth);

// submit() reads or writes immediately, and makes the kernel start writing back from its cache to the disk.
std::unique_ptr<IoQueue> make_plain_queue(size_t depth);

// The first of these that is available.
std::unique_ptr<IoQueue> make_io_queue(size_t depth);

}  // namespace longhaul
