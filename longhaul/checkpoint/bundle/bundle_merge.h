#pragma once

#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// Makes one checkpoint of several, which were written for it by different devices or tasks: their data files become its
// shards, in the order of `parts`, and one index has all entries. Slices of one tensor may come from several parts.
//
//   1. The indexes of the parts are read and checked.
//   2. A committed checkpoint of the name `prefix` is set aside (set_aside.h).
//   3. The data files get their new names, by hard links: until 4 the parts stay what they are.
//   4. The index is written under a temporary name, synced, and renamed: this is the commit.
//   5. What was set aside and the parts are removed; with `remove_directories` the parts' directories too, where they
//      are empty then. What fails here is reported in the log.
//
// Before 2, 4 and 5, and before an error undoes them, check_directory_owner() is asked: once the directory is
// another's, nothing in it is renamed or removed any more (DirectoryLostError).
//
// After another error the old checkpoint is there, and the parts. InvalidArgumentError: "Duplicate tensor keyed by
// NAME", "Merging bundles with conflicting endianness", "Merging bundles with different format versions", nothing to
// merge, a part that has the name of the result. NotFoundError, DataLossError: a part is not there, or damaged.
void merge_bundles(FileSystem& files, const std::vector<std::string>& parts, const std::string& prefix,
                   bool remove_directories = false);

}  // namespace longhaul
