#pragma once

#include <set>
#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// What the state file and the retention file of a directory say of the checkpoints in it, by base names. A copied
// directory has a state file that names the original's: these are taken for the copies.
struct NamedCheckpoints {
  std::set<std::string> kept;                 // committed once, and not to be deleted
  std::set<std::string> marked_for_deletion;  // their deletion was announced before it began
  std::set<std::string> elsewhere;  // canonical prefixes in other directories, of those in `kept` that were named so
};
NamedCheckpoints named_checkpoints(FileSystem& files, const std::string& directory);

// The prefixes that are named as kept, and of which data files are there, but no index, nor one aside: somebody has
// lost it, or not yet copied it. A checkpoint that is just being written or deleted, by this process or another, is
// none.
std::vector<std::string> checkpoints_without_index(FileSystem& files, const std::string& directory);

}  // namespace longhaul
