#include "longhaul/io/direct_writer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "longhaul/io/posix_call.h"

namespace longhaul {
namespace {

constexpr size_t kAlignment = 4096;                   // of blocks in the file and of their buffers
constexpr size_t kDirectFrom = size_t{1} << 20;       // smaller files are written at once
constexpr size_t kLeastBorrowed = size_t{64} << 10;   // smaller pieces are copied
constexpr uint64_t kRoomAhead = uint64_t{256} << 20;  // asked for where the size was not foretold

uint64_t aligned_down(uint64_t bytes) {
  return bytes / kAlignment * kAlignment;
}

uint64_t aligned_up(uint64_t bytes) {
  return aligned_down(bytes + kAlignment - 1);
}

// What memory must be aligned to for O_DIRECT; 0: the file system says that it has none, or none for our blocks.
uint64_t direct_memory_alignment(int fd) {
  struct statx info;
  std::memset(&info, 0, sizeof(info));
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0) return kAlignment;
  if ((info.stx_mask & STATX_DIOALIGN) == 0) return kAlignment;  // an older kernel
  return info.stx_dio_offset_align <= kAlignment ? info.stx_dio_mem_align : 0;
}

}  // namespace

void DirectWriter::Free::operator()(char* memory) const {
  std::free(memory);
}

DirectWriter::DirectWriter(int fd, std::string path, DirectWriterOptions options)
    : fd_(fd),
      path_(std::move(path)),
      options_(std::move(options)),
      blocks_(options_.in_flight + 1),
      direct_wanted_(options_.direct) {}

DirectWriter::~DirectWriter() {
  if (fd_ < 0) return;
  try {
    close();
  } catch (const std::exception&) {
  }
}

void DirectWriter::check_usable(const char* operation) const {
  if (fd_ < 0) throw FailedPreconditionError(std::string(operation) + " " + path_ + ": the file is closed");
  if (failed_) throw FailedPreconditionError(std::string(operation) + " " + path_ + ": an earlier write failed");
}

// Whatever goes wrong in `work`, nothing is under way afterwards: what was borrowed may be gone then.
template <typename Work>
void DirectWriter::guarded(const char* operation, Work work) {
  check_usable(operation);
  try {
    work();
  } catch (...) {
    failed_ = true;
    drain();
    throw;
  }
}

void DirectWriter::throw_failed(const char* operation, int error) const {
  throw_errno(error, std::string(operation) + " " + path_);
}

void DirectWriter::append(std::string_view data) {
  guarded("append", [&] {
    reap_what_is_written();
    copy(data);
    if (position_ == options_.expected_bytes) submit_what_is_left();
  });
}

void DirectWriter::append_borrowed(std::string_view data, std::shared_ptr<const void> owner) {
  guarded("append", [&] {
    reap_what_is_written();
    copy_or_borrow(data, owner);
    if (position_ == options_.expected_bytes) submit_what_is_left();
  });
}

void DirectWriter::copy_or_borrow(std::string_view data, const std::shared_ptr<const void>& owner) {
  const size_t head = std::min<size_t>(data.size(), aligned_up(position_) - position_);
  if (data.size() - head < kLeastBorrowed || !can_borrow(data.data() + head)) return copy(data);
  copy(data.substr(0, head));
  const size_t body = aligned_down(data.size() - head);
  borrow(data.substr(head, body), owner);
  copy(data.substr(head + body));
}

bool DirectWriter::can_borrow(const char* data) {
  if (memory_alignment_ == 0) {
    if (direct_wanted_) memory_alignment_ = direct_memory_alignment(fd_);
    if (memory_alignment_ == 0) {
      direct_wanted_ = false;
      memory_alignment_ = 1;
    }
  }
  return reinterpret_cast<uintptr_t>(data) % memory_alignment_ == 0;
}

void DirectWriter::copy(std::string_view data) {
  while (!data.empty()) {
    Block& block = blocks_[open_];
    if (!block.buffer) {
      block.buffer.reset(static_cast<char*>(std::aligned_alloc(kAlignment, options_.block_bytes)));
      if (!block.buffer) throw std::bad_alloc();
    }
    char* const to = block.buffer.get() + block.copied;
    const size_t count = std::min(data.size(), options_.block_bytes - block.size);
    std::memcpy(to, data.data(), count);
    data.remove_prefix(count);
    block.copied += count;
    block.add(to, count);
    grow(count);
  }
}

void DirectWriter::borrow(std::string_view data, const std::shared_ptr<const void>& owner) {
  while (!data.empty()) {
    Block& block = blocks_[open_];
    const size_t count = std::min(data.size(), options_.block_bytes - block.size);
    block.add(const_cast<char*>(data.data()), count);
    if (owner && (block.owners.empty() || block.owners.back() != owner)) block.owners.push_back(owner);
    data.remove_prefix(count);
    grow(count);
  }
}

void DirectWriter::grow(size_t bytes) {
  position_ += bytes;
  Block& block = blocks_[open_];
  block.size += bytes;
  if (block.size == options_.block_bytes || (under_way_ == 0 && is_worth_a_write(block))) submit();
}

// The device has nothing to do meanwhile.
bool DirectWriter::is_worth_a_write(const Block& block) {
  return block.size >= kDirectFrom && block.size % kAlignment == 0;
}

void DirectWriter::submit() {
  if (!queue_) start();
  Block& block = blocks_[open_];
  if (direct_wanted_ && !direct_) direct_wanted_ = set_direct(true);
  make_room(block.offset + block.size);
  queue_->submit({Transfer::Kind::kWrite, fd_, block.offset, block.pieces}, open_);
  block.under_way = true;
  ++under_way_;
  take_free_block(block.offset + block.size);
}

void DirectWriter::start() {
  if (direct_wanted_) direct_wanted_ = set_direct(true);
  queue_ = direct_wanted_ ? options_.queue(options_.in_flight) : make_plain_queue(options_.in_flight);
}

// The descriptor's flag; false: the file system refuses.
bool DirectWriter::set_direct(bool on) {
  const int flags = ::fcntl(fd_, F_GETFL);
  const int wanted = on ? flags | O_DIRECT : flags & ~O_DIRECT;
  if (flags < 0 || ::fcntl(fd_, F_SETFL, wanted) != 0) return false;
  direct_ = on;
  return true;
}

// A wish: where it is refused, the file grows with its blocks, and a full disk is met by the write that finds no room.
void DirectWriter::make_room(uint64_t end) {
  if (end <= room_ || !direct_) return;
  const uint64_t expected = aligned_up(options_.expected_bytes);
  const uint64_t wanted = end <= expected ? expected : end + kRoomAhead;
  ::fallocate(fd_, 0, 0, static_cast<off_t>(wanted));
  room_ = wanted;
}

void DirectWriter::take_free_block(uint64_t offset) {
  reap_what_is_written();
  if (under_way_ == options_.in_flight) reap();
  open_ = static_cast<size_t>(
      std::find_if(blocks_.begin(), blocks_.end(), [](const Block& block) { return !block.under_way; }) -
      blocks_.begin());
  blocks_[open_].offset = offset;
}

// What says that this write cannot be made this way, or not now: an ordinary one may do.
bool DirectWriter::is_refusal(int error) {
  switch (error) {
    case EINVAL:
    case EAGAIN:
    case EINTR:
    case ECANCELED:
    case ENOMEM:
    case EOPNOTSUPP: return true;
    default: return false;
  }
}

// Waits for one of the writes under way and frees its block.
void DirectWriter::reap() {
  settle(queue_->wait());
}

void DirectWriter::reap_what_is_written() {
  while (under_way_ > 0) {
    const auto finished = queue_->poll();
    if (!finished) return;
    settle(*finished);
  }
}

void DirectWriter::settle(const IoQueue::Finished& finished) {
  --under_way_;
  Block& block = blocks_[finished.tag];
  block.under_way = false;
  if (finished.result == -EINVAL) direct_wanted_ = false;
  const bool refused = finished.result < 0 && is_refusal(static_cast<int>(-finished.result));
  if (finished.result < 0 && !refused) throw_failed("write", static_cast<int>(-finished.result));
  const size_t done = refused ? 0 : static_cast<size_t>(finished.result);
  if (done < block.size) finish_plainly(block, done);
  block.restart(0);
}

void DirectWriter::Block::add(char* data, size_t count) {
  if (!pieces.empty() && static_cast<char*>(pieces.back().iov_base) + pieces.back().iov_len == data) {
    pieces.back().iov_len += count;
  } else {
    pieces.push_back({data, count});
  }
}

void DirectWriter::Block::restart(uint64_t at) {
  offset = at;
  size = copied = 0;
  pieces.clear();
  owners.clear();
}

// What O_DIRECT refused, or wrote only a part of: through the kernel's cache.
void DirectWriter::finish_plainly(const Block& block, size_t done) {
  uint64_t offset = block.offset;
  for (const iovec& piece : block.pieces) {
    const size_t skipped = std::min(done, piece.iov_len);
    done -= skipped;
    const std::string_view bytes(static_cast<const char*>(piece.iov_base), piece.iov_len);
    write_plainly(bytes.substr(skipped), offset + skipped);
    offset += piece.iov_len;
  }
}

void DirectWriter::write_plainly(std::string_view data, uint64_t offset) {
  if (direct_ && !set_direct(false)) throw_failed("write", errno);
  while (!data.empty()) {
    const ssize_t count = retried([&] { return ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset)); });
    if (count < 0) throw_failed("write", errno);
    data.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void DirectWriter::flush() {
  guarded("flush", [&] { flush_blocks(); });
}

// All that was foretold is here: why should the device wait until somebody syncs?
void DirectWriter::submit_what_is_left() {
  if (!queue_ && blocks_[open_].size < kDirectFrom) return;
  const std::string tail = take_tail();
  if (blocks_[open_].size > 0) submit();
  copy(tail);
}

// The bytes after the last multiple of 4096 are written through the cache, and stay in the open block, to be written
// again with what follows them.
void DirectWriter::flush_blocks() {
  const std::string tail = flushed_ == position_ ? std::string() : take_tail();
  Block& block = blocks_[open_];
  if (block.size > 0 && flushed_ < position_) {
    if (queue_ || block.size >= kDirectFrom) {
      submit();
    } else {
      finish_plainly(block, 0);
      block.restart(position_);
    }
  }
  while (under_way_ > 0) reap();
  if (!tail.empty()) write_plainly(tail, position_);
  copy(tail);
  flushed_ = position_;
}

// Off the open block. It was copied, so it is the end of the block's buffer.
std::string DirectWriter::take_tail() {
  Block& block = blocks_[open_];
  const size_t size = position_ - aligned_down(position_);
  if (size == 0) return {};
  std::string tail(block.buffer.get() + block.copied - size, size);
  position_ -= size;
  block.size -= size;
  block.copied -= size;
  block.pieces.back().iov_len -= size;
  if (block.pieces.back().iov_len == 0) block.pieces.pop_back();
  return tail;
}

void DirectWriter::sync() {
  guarded("sync", [&] {
    flush_blocks();
    cut();
    if (const int error = sync_data(fd_)) throw_failed("sync", error);
  });
}

// Takes back the room that was too much.
void DirectWriter::cut() {
  if (room_ <= position_) return;
  if (retried([&] { return ::ftruncate(fd_, static_cast<off_t>(position_)); }) != 0) throw_failed("truncate", errno);
  room_ = position_;
}

void DirectWriter::close() {
  if (fd_ < 0) return;
  std::exception_ptr error;
  try {
    guarded("close", [&] {
      flush_blocks();
      cut();
    });
  } catch (const std::exception&) {
    error = std::current_exception();
  }
  const int closed = ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
  queue_.reset();
  blocks_.clear();
  if (error) std::rethrow_exception(error);
  if (closed != 0 && closed != EINTR) throw_failed("close", closed);
}

// Waits for everything under way, whatever becomes of it.
void DirectWriter::drain() noexcept {
  try {
    for (; under_way_ > 0; --under_way_) queue_->wait();
  } catch (const Error&) {
    queue_.reset();  // which waits for what is left
    under_way_ = 0;
  }
  blocks_.clear();
}

}  // namespace longhaul
