#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/direct/direct_file.h"
#include "longhaul/io/direct/io_queue.h"
#include "longhaul/io/direct/write_blocks.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Options for how bytes are written to the disk; they never affect the bytes. The defaults are for programs, other
// values for tests and measurements.
struct DirectWriterOptions {
  uint64_t expected_bytes = 0;  // FileSystem::LargeFileOptions

  size_t block_bytes = size_t{8} << 20;  // per write: a multiple of 4096, at most 16 MiB
  size_t in_flight = 8;                  // blocks under way at a time
  bool direct = true;                    // false: through the kernel's cache even where O_DIRECT is available
  std::function<std::unique_ptr<IoQueue>(size_t depth)> queue = make_io_queue;
};

// A large file that is written bypassing the kernel's cache (O_DIRECT), several blocks at a time, with borrowed bytes
// written from where they are. Each append checks which blocks are written (WriteBlocks), and releases what they
// borrowed.
//
// While no block is under way, a block of 1 MiB already counts as full, so that the device is kept busy. So does the
// last block, once exactly the expected number of bytes has been appended.
//
// Appended bytes are collected into blocks that begin at multiples of 4096. Bytes are borrowed if their alignment in
// the file and in memory allows it. Others (edges, small pieces, memory without the alignment that the device requires)
// are copied into the block's own buffer. The end of the file, if shorter than 4096 bytes, goes through the kernel's
// cache. Space is allocated in advance, since the kernel writes several blocks at once only where the file is not
// growing; sync() and close() cut off the excess.
//
// A file of less than 1 MiB is one ordinary write. Where the file system refuses O_DIRECT, when the file is opened or
// later, the blocks are ordinary writes too. The same appends give the same bytes on every path.
//
// One thread at a time may call. Errors name the operation and the path. The call in which they are noticed throws
// them: an append, flush(), sync() or close(). After any error nothing is under way, and nothing more can be written
// (FailedPreconditionError).
class DirectWriter : public WritableFile {
 public:
  // Takes the descriptor of a new, empty file that was opened for writing.
  DirectWriter(int fd, std::string path, DirectWriterOptions options = {});
  ~DirectWriter() override;
  DirectWriter(const DirectWriter&) = delete;
  DirectWriter& operator=(const DirectWriter&) = delete;

  void append(std::string_view data) override;
  void append_borrowed(std::string_view data, std::shared_ptr<const void> owner = nullptr) override;
  void flush() override;
  void sync() override;
  void close() override;

 private:
  void check_usable(const char* operation) const;
  template <typename Work>
  void guarded(const char* operation, Work work);

  void copy_or_borrow(std::string_view data, const std::shared_ptr<const void>& owner);
  void copy(std::string_view data);
  void borrow(std::string_view data, const std::shared_ptr<const void>& owner);
  void grow(size_t bytes);
  void submit_what_is_left();
  void flush_blocks();
  std::string take_tail();

  const DirectWriterOptions options_;
  DirectFile file_;
  WriteBlocks blocks_;
  uint64_t position_ = 0;  // the bytes appended
  uint64_t flushed_ = 0;   // the position at the last flush()
  bool failed_ = false;
};

}  // namespace longhaul
