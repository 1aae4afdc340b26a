#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// A damaged checkpoint is renamed file by file: "model.ckpt-200.index" to "model.ckpt-200.index.corrupt" and so on. No
// reader or search, here or in TensorFlow, takes such a name for that of a checkpoint, so it is never tried again. The
// last few in a directory are kept for inspection.
//
// All renames and removals call check_directory_owner() first.

constexpr size_t kCorruptSetsKept = 2;

// Renames the files of the checkpoint under `prefix` (perhaps aside: set_aside.h), durably, the index first, so that
// from then on it no longer counts. Renamed files of an earlier checkpoint of that name are removed first. Returns the
// new path of the index. NotFoundError: there is no such checkpoint. If another error occurs after the index was
// renamed, complete_corrupt_sets() does the rest.
//
// A checkpoint that has lost its index is renamed too; the function then returns the new path of a data file. If the
// index is found, the checkpoint can be repaired, so it does not count as one of the sets below: nothing removes it.
std::string mark_corrupt(FileSystem& files, const std::string& prefix, const std::string& meta_suffix = "meta");

// Renames the files that mark_corrupt() left because of a crash, without replacing those that it has renamed. No
// checkpoint may be under way in the directory.
void complete_corrupt_sets(FileSystem& files, const std::string& directory);

// Whether mark_corrupt() of `base` is unfinished: the index has its new name, but not all data files. `names`: those in
// the directory, sorted.
bool is_half_corrupt(const std::vector<std::string>& names, const std::string& base);

// The prefixes of the corrupt sets in `directory`, by commit time, oldest first.
std::vector<std::string> corrupt_sets(FileSystem& files, const std::string& directory);

// Removes the oldest, keeping `keep` of them.
void remove_corrupt_sets(FileSystem& files, const std::string& directory, size_t keep);

}  // namespace longhaul
