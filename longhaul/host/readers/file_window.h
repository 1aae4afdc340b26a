#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "longhaul/io/files/file.h"

namespace longhaul {

// A file that is read from front to back, in large pieces. One thread.
class FileWindow {
 public:
  explicit FileWindow(std::unique_ptr<ReadableFile> file) : file_(std::move(file)) {}

  // The `count` bytes at `offset`, fewer only at the end of the file. Valid until the next call. Allocates `count`
  // bytes, so callers must check it first.
  std::string_view at(uint64_t offset, size_t count) {
    if (offset < begin_ || offset + count > begin_ + filled_) load(offset, count);
    return held().substr(offset - begin_, count);
  }
  // Some bytes at `offset`: empty only at the end of the file.
  std::string_view some(uint64_t offset) {
    if (offset < begin_ || offset >= begin_ + filled_) load(offset, 1);
    return held().substr(offset - begin_);
  }
  uint64_t file_size() const { return file_->size(); }

 private:
  static constexpr size_t kReadBytes = 256 * 1024;

  std::string_view held() const { return std::string_view(buffer_).substr(0, filled_); }
  // Nothing is held after a failed read.
  void load(uint64_t offset, size_t count) {
    filled_ = 0;
    buffer_.resize(std::max(count, kReadBytes));
    begin_ = offset;
    filled_ = file_->read(offset, buffer_.data(), buffer_.size());
  }

  const std::unique_ptr<ReadableFile> file_;
  std::string buffer_;
  size_t filled_ = 0;  // valid bytes in the buffer: the file's from begin_ on
  uint64_t begin_ = 0;
};

}  // namespace longhaul
