#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace longhaul {

// Blocks begin at multiples of this in the file, and their buffers in memory.
inline constexpr size_t kDirectAlignment = 4096;

inline uint64_t direct_down(uint64_t bytes) {
  return bytes / kDirectAlignment * kDirectAlignment;
}
inline uint64_t direct_up(uint64_t bytes) {
  return direct_down(bytes + kDirectAlignment - 1);
}

// The descriptor of a file that DirectWriter writes. Writes bypass the kernel's cache (O_DIRECT) as long as this is
// wanted and the file system does not refuse it. Errors name the operation and the path. One thread at a time may call.
class DirectFile {
 public:
  // Takes the descriptor; close() gives it back, the destructor does not.
  DirectFile(int fd, std::string path, bool wants_direct, uint64_t expected_bytes);
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }

  // Turns O_DIRECT on if it is wanted. False: it is off, and stays so if it was refused.
  bool turn_direct();
  void refuse_direct() { wants_direct_ = false; }  // what is written from now on need not try

  // Required of bytes that are written from where they are.
  uint64_t memory_alignment();

  // Allocates space up to there, and more ahead. A wish: where it is refused, the file grows as it is written, and a
  // full disk is met by the write that finds no space.
  void make_room(uint64_t end);
  void cut(uint64_t length);  // takes back the space behind

  void write_cached(std::string_view data, uint64_t offset);  // through the kernel's cache
  void sync();
  int close();  // 0, or its errno; the file is closed either way

  [[noreturn]] void fail(const char* operation, int error) const;

 private:
  bool set_direct(bool on);

  int fd_;
  const std::string path_;
  const uint64_t expected_bytes_;
  uint64_t room_ = 0;              // the length on disk, as allocated
  uint64_t memory_alignment_ = 0;  // 0: not known yet
  bool wants_direct_;              // and it was not refused so far
  bool is_direct_ = false;         // the descriptor's flag
};

}  // namespace longhaul
