#pragma once

#include <string>

#include "longhaul/base/clock.h"

namespace longhaul::console {

// Tells of changes in a directory, as far as the kernel notices them: not those that other machines make on a file
// server. One thread at a time.
class DirectoryWatch {
 public:
  explicit DirectoryWatch(const std::string& directory);
  ~DirectoryWatch();
  DirectoryWatch(const DirectoryWatch&) = delete;
  DirectoryWatch& operator=(const DirectoryWatch&) = delete;

  // Returns when a file was written or appeared since the last call, or after that time.
  void wait_for_change(Seconds timeout);

 private:
  const int descriptor_;  // -1: there is no watch, and each wait takes all of its time
};

}  // namespace longhaul::console
