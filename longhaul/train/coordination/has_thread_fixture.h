#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace longhaul {

// Whether this process has a thread of this name.
inline bool has_thread(const std::string& name) {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream comm(task.path() / "comm");
    std::string line;
    if (std::getline(comm, line) && line == name) return true;
  }
  return false;
}

}  // namespace longhaul
