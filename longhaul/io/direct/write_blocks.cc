#include "longhaul/io/direct/write_blocks.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

// What says that this write cannot be made this way, or not now: an ordinary one may do.
bool is_refused_write(int error) {
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

// What is left of the block after its first `done` bytes.
void write_rest_cached(DirectFile& file, const WriteBlock& block, size_t done) {
  uint64_t offset = block.offset;
  for (const iovec& piece : block.pieces) {
    const size_t skipped = std::min(done, piece.iov_len);
    done -= skipped;
    const std::string_view bytes(static_cast<const char*>(piece.iov_base), piece.iov_len);
    file.write_cached(bytes.substr(skipped), offset + skipped);
    offset += piece.iov_len;
  }
}

}  // namespace

void WriteBlock::Free::operator()(char* memory) const {
  std::free(memory);
}

size_t WriteBlock::copy(std::string_view data, size_t limit) {
  if (!buffer) {
    buffer.reset(static_cast<char*>(std::aligned_alloc(kDirectAlignment, limit)));
    if (!buffer) throw std::bad_alloc();
  }
  char* const to = buffer.get() + copied;
  const size_t count = std::min(data.size(), limit - size);
  std::memcpy(to, data.data(), count);
  copied += count;
  add(to, count);
  return count;
}

size_t WriteBlock::borrow(std::string_view data, const std::shared_ptr<const void>& owner, size_t limit) {
  const size_t count = std::min(data.size(), limit - size);
  add(const_cast<char*>(data.data()), count);
  if (owner && (owners.empty() || owners.back() != owner)) owners.push_back(owner);
  return count;
}

void WriteBlock::add(char* data, size_t count) {
  if (!pieces.empty() && static_cast<char*>(pieces.back().iov_base) + pieces.back().iov_len == data) {
    pieces.back().iov_len += count;
  } else {
    pieces.push_back({data, count});
  }
  size += count;
}

std::string WriteBlock::take_tail(size_t count) {
  if (count == 0) return {};
  std::string tail(buffer.get() + copied - count, count);
  size -= count;
  copied -= count;
  pieces.back().iov_len -= count;
  if (pieces.back().iov_len == 0) pieces.pop_back();
  return tail;
}

void WriteBlock::restart(uint64_t at) {
  offset = at;
  size = copied = 0;
  pieces.clear();
  owners.clear();
}

WriteBlocks::WriteBlocks(DirectFile& file, size_t in_flight, MakeQueue make_queue)
    : file_(file), in_flight_(in_flight), make_queue_(std::move(make_queue)), blocks_(in_flight + 1) {}

void WriteBlocks::submit() {
  const bool direct = file_.turn_direct();
  if (!queue_) queue_ = direct ? make_queue_(in_flight_) : make_plain_queue(in_flight_);
  WriteBlock& block = open();
  const uint64_t end = block.offset + block.size;
  file_.make_room(end);
  queue_->submit({Transfer::Kind::kWrite, file_.descriptor(), block.offset, block.pieces}, open_);
  block.under_way = true;
  ++under_way_;
  take_free(end);
}

void WriteBlocks::take_free(uint64_t offset) {
  reap_written();
  if (under_way_ == in_flight_) settle(queue_->wait());
  open_ = static_cast<size_t>(
      std::find_if(blocks_.begin(), blocks_.end(), [](const WriteBlock& block) { return !block.under_way; }) -
      blocks_.begin());
  open().offset = offset;
}

void WriteBlocks::write_open_cached() {
  WriteBlock& block = open();
  write_rest_cached(file_, block, 0);
  block.restart(block.offset + block.size);
}

void WriteBlocks::reap_written() {
  while (under_way_ > 0) {
    const auto finished = queue_->poll();
    if (!finished) return;
    settle(*finished);
  }
}

void WriteBlocks::wait() {
  while (under_way_ > 0) settle(queue_->wait());
}

void WriteBlocks::settle(const IoQueue::Finished& finished) {
  --under_way_;
  WriteBlock& block = blocks_[finished.tag];
  block.under_way = false;
  if (finished.result == -EINVAL) file_.refuse_direct();
  const bool refused = finished.result < 0 && is_refused_write(static_cast<int>(-finished.result));
  if (finished.result < 0 && !refused) file_.fail("write", static_cast<int>(-finished.result));
  const size_t done = refused ? 0 : static_cast<size_t>(finished.result);
  if (done < block.size) write_rest_cached(file_, block, done);
  block.restart(0);
}

void WriteBlocks::drain() noexcept {
  try {
    for (; under_way_ > 0; --under_way_) queue_->wait();
  } catch (const Error&) {
    queue_.reset();  // which waits for what is left
    under_way_ = 0;
  }
  blocks_.clear();
}

void WriteBlocks::clear() {
  queue_.reset();
  blocks_.clear();
}

}  // namespace longhaul
