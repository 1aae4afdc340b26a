#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/file.h"
#include "longhaul/io/io_queue.h"

namespace longhaul {

// How the bytes get to the disk, never which: the defaults are for programs, the rest for tests and measurements.
struct DirectWriterOptions {
  uint64_t expected_bytes = 0;  // FileSystem::LargeFileOptions

  size_t block_bytes = size_t{8} << 20;  // of one write: a multiple of 4096, at most 16 MiB
  size_t in_flight = 8;                  // blocks under way at a time
  bool direct = true;                    // false: through the kernel's cache even where O_DIRECT can be had
  std::function<std::unique_ptr<IoQueue>(size_t depth)> queue = make_io_queue;
};

// A large file that is written past the kernel's cache (O_DIRECT), several blocks at a time, borrowed bytes straight
// from where they are.
//
//   put together --full--> under way --written--> free        blocks; what lent bytes to one is let go when it is free,
//                                                             which each append looks for
//
// While no block is under way, one of 1 MiB is full: the device gets something to do. So is the last one, once
// exactly as many bytes are there as were expected.
//
// What is appended is put together to blocks that begin at multiples of 4096. Bytes are borrowed where their place in
// the file and in memory allows it, and copied into the block's own buffer where not: edges, small pieces, memory that
// is not aligned as the device wants it. The end of the file that fills no 4096 bytes goes through the kernel's cache.
// Room is asked for beforehand, since the kernel writes several blocks at once only where the file is not growing; what
// was too much is cut off by sync() and close().
//
// A file of less than 1 MiB is one ordinary write. Where the file system refuses O_DIRECT, when the file is opened or
// later, the blocks are ordinary writes too. The same appends give the same bytes on every path.
//
// One thread at a time. Errors name the operation and the path, and come out of the call that meets them: an append,
// flush(), sync() or close(). After any error nothing is under way, and nothing more goes into the file
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
  struct Free {
    void operator()(char* memory) const;
  };
  struct Block {
    uint64_t offset = 0;
    size_t size = 0;
    std::vector<iovec> pieces;
    std::vector<std::shared_ptr<const void>> owners;
    std::unique_ptr<char[], Free> buffer;  // of block_bytes, aligned, made when something is copied
    size_t copied = 0;                     // bytes of it in use
    bool under_way = false;

    void add(char* data, size_t count);
    void restart(uint64_t at);
  };

  void check_usable(const char* operation) const;
  template <typename Work>
  void guarded(const char* operation, Work work);
  [[noreturn]] void throw_failed(const char* operation, int error) const;

  void copy_or_borrow(std::string_view data, const std::shared_ptr<const void>& owner);
  void copy(std::string_view data);
  void borrow(std::string_view data, const std::shared_ptr<const void>& owner);
  bool can_borrow(const char* data);
  void grow(size_t bytes);
  static bool is_worth_a_write(const Block& block);
  void submit();
  void start();
  bool set_direct(bool on);
  void make_room(uint64_t end);
  void take_free_block(uint64_t offset);
  void reap();
  void reap_what_is_written();
  void settle(const IoQueue::Finished& finished);
  static bool is_refusal(int error);
  void finish_plainly(const Block& block, size_t done);
  void write_plainly(std::string_view data, uint64_t offset);
  void submit_what_is_left();
  void flush_blocks();
  std::string take_tail();
  void cut();
  void drain() noexcept;

  int fd_;
  const std::string path_;
  const DirectWriterOptions options_;
  std::vector<Block> blocks_;
  size_t open_ = 0;                 // the block that is put together
  std::unique_ptr<IoQueue> queue_;  // once there was a block to submit
  size_t under_way_ = 0;
  uint64_t position_ = 0;          // the bytes appended
  uint64_t flushed_ = 0;           // the position at the last flush()
  uint64_t room_ = 0;              // the file's length on the disk, as it was asked for
  uint64_t memory_alignment_ = 0;  // that borrowed bytes must have; 0: not known yet
  bool direct_wanted_ = true;      // by the options, and not refused so far
  bool direct_ = false;            // the descriptor's flag
  bool failed_ = false;
};

}  // namespace longhaul
