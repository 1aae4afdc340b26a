#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/direct/direct_file.h"
#include "longhaul/io/direct/io_queue.h"

namespace longhaul {

// Bytes that follow each other in a file, in pieces: borrowed ones stay where they are, others are copied into the
// block's own buffer.
struct WriteBlock {
  struct Free {
    void operator()(char* memory) const;
  };

  // Append as many of the bytes as fit into a block of `limit`, and return how many that were.
  size_t copy(std::string_view data, size_t limit);
  size_t borrow(std::string_view data, const std::shared_ptr<const void>& owner, size_t limit);

  std::string take_tail(size_t count);  // the last bytes, which were copied
  void restart(uint64_t at);            // empty, and at that place in the file

  uint64_t offset = 0;
  size_t size = 0;
  std::vector<iovec> pieces;
  std::vector<std::shared_ptr<const void>> owners;  // of borrowed bytes
  std::unique_ptr<char[], Free> buffer;             // of `limit` bytes, aligned, allocated when something is copied
  size_t copied = 0;                                // bytes of it in use
  bool under_way = false;

 private:
  void add(char* data, size_t count);
};

// The blocks of a DirectWriter, of which one is open: it is being filled.
//
//   open --submit--> under way --written--> free --a submit--> open       the owners of its borrowed bytes are released
//                                                                         once it is free
//
// If O_DIRECT refuses a block, or writes only a part of it, the rest is written through the kernel's cache. The call
// that notices the end of a write throws its error; after any error call drain(). One thread at a time may call.
class WriteBlocks {
 public:
  using MakeQueue = std::function<std::unique_ptr<IoQueue>(size_t depth)>;

  // The file outlives the blocks. At most `in_flight` are under way; `make_queue` is for writes with O_DIRECT.
  WriteBlocks(DirectFile& file, size_t in_flight, MakeQueue make_queue);
  WriteBlocks(const WriteBlocks&) = delete;
  WriteBlocks& operator=(const WriteBlocks&) = delete;

  WriteBlock& open() { return blocks_[open_]; }
  bool has_begun() const { return queue_ != nullptr; }  // a block was submitted
  bool is_idle() const { return under_way_ == 0; }

  // Starts to write the open block, and opens a free one behind it; if there is none, waits until one is written.
  void submit();
  void write_open_cached();  // at once; it stays open, and begins behind what was written

  void reap_written();  // frees the blocks that are written by now
  void wait();          // until nothing is under way

  void drain() noexcept;  // waits for everything under way, whatever becomes of it, and frees all memory
  void clear();           // frees all memory; nothing is under way

 private:
  void take_free(uint64_t offset);
  void settle(const IoQueue::Finished& finished);

  DirectFile& file_;
  const size_t in_flight_;
  const MakeQueue make_queue_;
  std::vector<WriteBlock> blocks_;
  size_t open_ = 0;
  std::unique_ptr<IoQueue> queue_;  // created with the first submitted block
  size_t under_way_ = 0;
};

}  // namespace longhaul
