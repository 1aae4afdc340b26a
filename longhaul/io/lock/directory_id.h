#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul {

// Identifies a directory of this machine. A name cannot, because after an unmount, a rename or a removal it may belong
// to another directory.
struct DirectoryId {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t born = 0;  // nanoseconds since 1970, as inode numbers are reused; 0: the file system does not report it
  bool operator==(const DirectoryId&) const = default;
};

// nullopt: there is no directory of that name, or it cannot be examined.
std::optional<DirectoryId> directory_id(const std::string& directory);

// "device 8:1, inode 1234"
std::string describe(const DirectoryId& id);

}  // namespace longhaul
