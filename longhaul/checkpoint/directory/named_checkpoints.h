#pragma once

#include <set>
#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// What the state file and the retention file of a directory say about the checkpoints in it, by base names. The state
// file of a copied directory names the original's checkpoints; these names are taken to mean the copies.
struct NamedCheckpoints {
  std::set<std::string> kept;                 // committed once, and not to be deleted
  std::set<std::string> marked_for_deletion;  // their deletion was announced before it began
  std::set<std::string> elsewhere;  // for those in `kept` named with another directory: their canonical prefixes there
};
NamedCheckpoints named_checkpoints(FileSystem& files, const std::string& directory);

// The prefixes named as kept that have data files but no index, not even aside: it was lost, or not copied yet.
// Checkpoints being written or deleted at the moment, by this process or another, are left out.
std::vector<std::string> checkpoints_without_index(FileSystem& files, const std::string& directory);

}  // namespace longhaul
