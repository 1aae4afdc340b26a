#pragma once

#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// Merges several checkpoints, written as its parts by different devices or tasks, into one: their data files become its
// shards, in the order of `parts`, and one index has all entries. Slices of one tensor may come from several parts.
//
//   1. The indexes of the parts are read and checked.
//   2. A committed checkpoint named `prefix` is set aside (set_aside.h).
//   3. The data files get their new names, by hard links: until 4, the parts remain intact.
//   4. The index is written under a temporary name, synced, and renamed: this is the commit.
//   5. The parts and everything set aside are removed; with `remove_directories` also the parts' directories, if they
//      are empty then. Failures here are only logged.
//
// Before 2, 4 and 5, and before an error undoes them, check_directory_owner() is called: once another process owns the
// directory, nothing in it is renamed or removed any more (DirectoryLostError).
//
// After any other error, the old checkpoint and the parts are still there. InvalidArgumentError: "Duplicate tensor
// keyed by NAME", "Merging bundles with conflicting endianness", "Merging bundles with different format versions",
// nothing to merge, a part with the name of the result. NotFoundError, DataLossError: a part is missing, or damaged.
void merge_bundles(FileSystem& files, const std::vector<std::string>& parts, const std::string& prefix,
                   bool remove_directories = false);

}  // namespace longhaul
