#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "longhaul/base/error.h"

namespace longhaul {

// The disk of with_small_disk.sh, which the destructor empties.
class SmallDisk {
 public:
  ~SmallDisk() {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) std::filesystem::remove_all(entry.path());
  }

  const std::string& path() const { return path_; }

  // The disk has no more than this left; false: it has less.
  bool leave_free(uint64_t bytes) const {
    const uint64_t free = std::filesystem::space(path_).free;
    std::ofstream(path_ + "/ballast") << std::string(free - std::min(bytes, free), 'x');
    return std::filesystem::space(path_).free + 4096 >= bytes;
  }
  void drop_ballast() const { std::filesystem::remove(path_ + "/ballast"); }

 private:
  static std::string folder() {
    const char* const name = std::getenv("LONGHAUL_SMALL_DISK");
    if (name == nullptr) throw InvalidArgumentError("LONGHAUL_SMALL_DISK names no disk: use with_small_disk.sh");
    return name;
  }

  const std::string path_ = folder();
};

}  // namespace longhaul
