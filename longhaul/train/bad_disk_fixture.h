#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "longhaul/testing/faulty_file_system.h"

namespace longhaul {

// A disk on which a test decides how much room there is, and what a rename or a removal does. Set these while nothing
// is written.
class BadDisk : public testing::FaultyFileSystem {
 public:
  uint64_t free_bytes(const std::string& path) override { return room ? room() : FaultyFileSystem::free_bytes(path); }
  void rename(const std::string& from, const std::string& to) override {
    if (before_rename) before_rename(from, to);
    FaultyFileSystem::rename(from, to);
  }
  std::unique_ptr<ReadableFile> open(const std::string& path) override {
    if (before_open) before_open(path);
    return FaultyFileSystem::open(path);
  }
  void remove(const std::string& path) override {
    if (before_remove) before_remove(path);
    FaultyFileSystem::remove(path);
  }

  std::function<uint64_t()> room;                                                     // empty: what there is
  std::function<void(const std::string& from, const std::string& to)> before_rename;  // may throw
  std::function<void(const std::string& path)> before_remove;
  std::function<void(const std::string& path)> before_open;
};

// Flips a bit in the middle of a file.
inline void flip_a_bit(const std::string& path) {
  std::string bytes = read_file(FileSystem::real(), path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
  const auto file = FileSystem::real().create(path);
  file->append(bytes);
  file->close();
}

}  // namespace longhaul
