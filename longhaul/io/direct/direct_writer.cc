#include "longhaul/io/direct/direct_writer.h"

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

constexpr size_t kDirectFrom = size_t{1} << 20;      // smaller files are written at once
constexpr size_t kLeastBorrowed = size_t{64} << 10;  // smaller pieces are copied

// The device has nothing to do meanwhile.
bool is_worth_a_write(const WriteBlock& block) {
  return block.size >= kDirectFrom && block.size % kDirectAlignment == 0;
}

}  // namespace

DirectWriter::DirectWriter(int fd, std::string path, DirectWriterOptions options)
    : options_(std::move(options)),
      file_(fd, std::move(path), options_.direct, options_.expected_bytes),
      blocks_(file_, options_.in_flight, options_.queue) {}

DirectWriter::~DirectWriter() {
  if (!file_.is_open()) return;
  try {
    close();
  } catch (...) {
  }
}

void DirectWriter::check_usable(const char* operation) const {
  const char* const why = !file_.is_open() ? ": the file is closed" : failed_ ? ": an earlier write failed" : nullptr;
  if (why != nullptr) throw FailedPreconditionError(std::string(operation) + " " + file_.path() + why);
}

// Whatever goes wrong in `work`, nothing is under way afterwards: what was borrowed may be gone then.
template <typename Work>
void DirectWriter::guarded(const char* operation, Work work) {
  check_usable(operation);
  try {
    work();
  } catch (...) {
    failed_ = true;
    blocks_.drain();
    throw;
  }
}

void DirectWriter::append(std::string_view data) {
  guarded("append", [&] {
    blocks_.reap_written();
    copy(data);
    if (position_ == options_.expected_bytes) submit_what_is_left();
  });
}

void DirectWriter::append_borrowed(std::string_view data, std::shared_ptr<const void> owner) {
  guarded("append", [&] {
    blocks_.reap_written();
    copy_or_borrow(data, owner);
    if (position_ == options_.expected_bytes) submit_what_is_left();
  });
}

void DirectWriter::copy_or_borrow(std::string_view data, const std::shared_ptr<const void>& owner) {
  const size_t head = std::min<size_t>(data.size(), direct_up(position_) - position_);
  const auto address = reinterpret_cast<uintptr_t>(data.data() + head);
  if (data.size() - head < kLeastBorrowed || address % file_.memory_alignment() != 0) return copy(data);
  copy(data.substr(0, head));
  const size_t body = direct_down(data.size() - head);
  borrow(data.substr(head, body), owner);
  copy(data.substr(head + body));
}

void DirectWriter::copy(std::string_view data) {
  while (!data.empty()) {
    const size_t count = blocks_.open().copy(data, options_.block_bytes);
    data.remove_prefix(count);
    grow(count);
  }
}

void DirectWriter::borrow(std::string_view data, const std::shared_ptr<const void>& owner) {
  while (!data.empty()) {
    const size_t count = blocks_.open().borrow(data, owner, options_.block_bytes);
    data.remove_prefix(count);
    grow(count);
  }
}

void DirectWriter::grow(size_t bytes) {
  position_ += bytes;
  const WriteBlock& block = blocks_.open();
  if (block.size == options_.block_bytes || (blocks_.is_idle() && is_worth_a_write(block))) blocks_.submit();
}

void DirectWriter::flush() {
  guarded("flush", [&] { flush_blocks(); });
}

// All that was foretold is here: why should the device wait until somebody syncs?
void DirectWriter::submit_what_is_left() {
  if (!blocks_.has_begun() && blocks_.open().size < kDirectFrom) return;
  const std::string tail = take_tail();
  if (blocks_.open().size > 0) blocks_.submit();
  copy(tail);
}

// The bytes after the last multiple of 4096 are written through the cache, and stay in the open block, to be written
// again with what follows them.
void DirectWriter::flush_blocks() {
  const std::string tail = flushed_ == position_ ? std::string() : take_tail();
  if (blocks_.open().size > 0 && flushed_ < position_) {
    if (blocks_.has_begun() || blocks_.open().size >= kDirectFrom) {
      blocks_.submit();
    } else {
      blocks_.write_open_cached();
    }
  }
  blocks_.wait();
  if (!tail.empty()) file_.write_cached(tail, position_);
  copy(tail);
  flushed_ = position_;
}

// Off the open block: they were copied, as what does not fill 4096 bytes always is.
std::string DirectWriter::take_tail() {
  const size_t size = position_ - direct_down(position_);
  position_ -= size;
  return blocks_.open().take_tail(size);
}

void DirectWriter::sync() {
  guarded("sync", [&] {
    flush_blocks();
    file_.cut(position_);
    file_.sync();
  });
}

void DirectWriter::close() {
  if (!file_.is_open()) return;
  std::exception_ptr error;
  try {
    guarded("close", [&] {
      flush_blocks();
      file_.cut(position_);
    });
  } catch (...) {
    error = std::current_exception();
  }
  const int closed = file_.close();
  blocks_.clear();
  if (error) std::rethrow_exception(error);
  if (closed != 0 && closed != EINTR) file_.fail("close", closed);
}

}  // namespace longhaul
