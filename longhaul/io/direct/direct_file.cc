#include "longhaul/io/direct/direct_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/io/files/posix_call.h"

namespace longhaul {
namespace {

constexpr uint64_t kRoomAhead = uint64_t{256} << 20;  // asked for where the size was not foretold

// What memory must be aligned to for O_DIRECT; 0: the file system says that it has none, or none for our blocks.
uint64_t direct_memory_alignment(int fd) {
  struct statx info;
  std::memset(&info, 0, sizeof(info));
  if (::statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) != 0) return kDirectAlignment;
  if ((info.stx_mask & STATX_DIOALIGN) == 0) return kDirectAlignment;  // an older kernel
  return info.stx_dio_offset_align <= kDirectAlignment ? info.stx_dio_mem_align : 0;
}

}  // namespace

DirectFile::DirectFile(int fd, std::string path, bool wants_direct, uint64_t expected_bytes)
    : fd_(fd), path_(std::move(path)), expected_bytes_(expected_bytes), wants_direct_(wants_direct) {}

void DirectFile::fail(const char* operation, int error) const {
  throw_errno(error, std::string(operation) + " " + path_);
}

bool DirectFile::turn_direct() {
  if (wants_direct_ && !is_direct_) wants_direct_ = set_direct(true);
  return wants_direct_;
}

// The descriptor's flag; false: the file system refuses.
bool DirectFile::set_direct(bool on) {
  const int flags = ::fcntl(fd_, F_GETFL);
  const int wanted = on ? flags | O_DIRECT : flags & ~O_DIRECT;
  if (flags < 0 || ::fcntl(fd_, F_SETFL, wanted) != 0) return false;
  is_direct_ = on;
  return true;
}

uint64_t DirectFile::memory_alignment() {
  if (memory_alignment_ == 0) {
    if (wants_direct_) memory_alignment_ = direct_memory_alignment(fd_);
    if (memory_alignment_ == 0) {
      wants_direct_ = false;
      memory_alignment_ = 1;
    }
  }
  return memory_alignment_;
}

void DirectFile::make_room(uint64_t end) {
  if (end <= room_ || !is_direct_) return;
  const uint64_t expected = direct_up(expected_bytes_);
  const uint64_t wanted = end <= expected ? expected : end + kRoomAhead;
  ::fallocate(fd_, 0, 0, static_cast<off_t>(wanted));
  room_ = wanted;
}

void DirectFile::cut(uint64_t length) {
  if (room_ <= length) return;
  if (retried([&] { return ::ftruncate(fd_, static_cast<off_t>(length)); }) != 0) fail("truncate", errno);
  room_ = length;
}

void DirectFile::write_cached(std::string_view data, uint64_t offset) {
  if (is_direct_ && !set_direct(false)) fail("write", errno);
  while (!data.empty()) {
    const ssize_t count = retried([&] { return ::pwrite(fd_, data.data(), data.size(), static_cast<off_t>(offset)); });
    if (count < 0) fail("write", errno);
    data.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
}

void DirectFile::sync() {
  if (const int error = sync_data(fd_)) fail("sync", error);
}

int DirectFile::close() {
  return ::close(std::exchange(fd_, -1)) == 0 ? 0 : errno;
}

}  // namespace longhaul
