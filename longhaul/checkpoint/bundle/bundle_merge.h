#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// Merges several checkpoints into one. The parts were written by different devices or tasks. Their data files become
// the shards of the result, in the order of `parts`, and one index has all entries. Slices of one tensor may come from
// several parts.
//
//   1. The indexes of the parts are read and checked.
//   2. The index is written under a temporary name and synced.
//   3. If there is a committed checkpoint named `prefix`, it is set aside (set_aside.h).
//   4. The data files get their new names, by hard links, so the parts remain intact.
//   5. The index gets its name: this is the commit.
//   6. The parts and everything set aside are removed; with `remove_directories`, the parts' directories too, if they
//      are then empty. Failures here are only logged.
//
// check_directory_owner() is called before 2, 5 and 6, and before they are undone after an error. Once another process
// owns the directory, nothing in it is renamed or removed any more (DirectoryLostError).
//
// After any other error, the old checkpoint and the parts are still there. InvalidArgumentError: "Duplicate tensor
// keyed by NAME", "Merging bundles with conflicting endianness", "Merging bundles with different format versions",
// there is nothing to merge, or a part has the name of the result. NotFoundError, DataLossError: a part is missing, or
// damaged.
void merge_bundles(FileSystem& files, const std::vector<std::string>& parts, const std::string& prefix,
                   bool remove_directories = false);

}  // namespace longhaul
