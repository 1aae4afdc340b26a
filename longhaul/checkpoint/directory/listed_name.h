#pragma once

#include <string_view>

namespace longhaul {

// Whether a file that lists checkpoints of its own directory may have this name in it: that of a file in the directory
// itself, on one line.
inline bool is_listed_name(std::string_view name) {
  constexpr size_t kMostBytes = 255;  // as file systems have it
  return !name.empty() && name.size() <= kMostBytes && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\n\0", 3)) == name.npos;
}

}  // namespace longhaul
