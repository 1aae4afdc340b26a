#pragma once

#include <string>
#include <vector>

#include "longhaul/train/recovery/fall_back.h"

namespace longhaul {

// The checkpoints to recover from, in the order in which to try them.
struct RecoverySearch {
  std::vector<std::string> candidates;
  std::vector<std::string> incomplete;     // damaged: data files are missing
  std::vector<std::string> without_index;  // damaged: committed, but the index is missing
  std::string mirror_failure;              // why the mirror is skipped; empty: it is not
};

// Searches the directory and its mirror. A thread of its own, lh-look, searches the mirror. It is left behind at the
// timeout or the deadline, and from then on uses only the file system.
RecoverySearch search_for_recovery(const FallBackOptions& options);

}  // namespace longhaul
