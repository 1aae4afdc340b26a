#pragma once

#include <string>
#include <vector>

#include "longhaul/train/recovery/fall_back.h"

namespace longhaul {

// What there is to recover from, in the order in which it is to be tried.
struct RecoverySearch {
  std::vector<std::string> candidates;
  std::vector<std::string> incomplete;     // damaged: data files are missing
  std::vector<std::string> without_index;  // damaged: they were committed, and their index is missing
  std::string mirror_failure;              // why the mirror is left out; empty: it is not
};

// Searches the directory and its mirror; the mirror on a thread of its own, lh-look, which is left to itself when the
// timeout ends, and keeps nothing but the file system.
RecoverySearch search_for_recovery(const FallBackOptions& options);

}  // namespace longhaul
