#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul {

// Which directory it is, of all that the machine has: its name may be that of another one a moment later, after an
// unmount, a rename, a removal.
struct DirectoryId {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t born = 0;  // nanoseconds since 1970, as numbers of inodes are used again; 0: the file system does not tell
  bool operator==(const DirectoryId&) const = default;
};

// nullopt: there is no directory of that name, or it cannot be asked.
std::optional<DirectoryId> directory_id(const std::string& directory);

// "device 8:1, inode 1234"
std::string describe(const DirectoryId& id);

}  // namespace longhaul
