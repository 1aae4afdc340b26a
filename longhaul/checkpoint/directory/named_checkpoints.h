#pragma once

#include <set>
#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The checkpoints of a directory that its state file and its retention file name, by base names. The state file of a
// copied directory names the checkpoints of the original; these names are taken to mean the copies.
struct NamedCheckpoints {
  std::set<std::string> kept;                 // committed once, and not to be deleted
  std::set<std::string> marked_for_deletion;  // their deletion was announced before it began
  std::set<std::string> elsewhere;  // for those in `kept` named with another directory: their canonical prefixes there
};
NamedCheckpoints named_checkpoints(FileSystem& files, const std::string& directory);

// The prefixes named as kept that have data files but no index, not even one set aside: it was lost, or not copied yet.
// Leaves out checkpoints that this process or another is writing or deleting at the moment.
std::vector<std::string> checkpoints_without_index(FileSystem& files, const std::string& directory);

}  // namespace longhaul
