#pragma once

#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// What becomes of a checkpoint that is damaged: each of its files is renamed, "model.ckpt-200.index" to
// "model.ckpt-200.index.corrupt" and so on. No reader and no search takes such a name for a checkpoint's, here or in
// TensorFlow, so it is never tried again, and still there to be looked at: the last few of a directory are.
//
// All renames and removals ask check_directory_owner() first.

constexpr size_t kCorruptSetsKept = 2;

// Renames the files of the checkpoint that lies under `prefix` (perhaps aside: set_aside.h), the index first, so that
// from then on it counts no more; durably. What was renamed of an earlier checkpoint of that name goes before. Returns
// the new path of the index. NotFoundError: there is no such checkpoint. After another error, from the index on,
// complete_corrupt_sets() does the rest.
//
// One that has lost its index is renamed too, and gives the new path of a data file. It may be made whole again by its
// index, so it counts as none of the sets below: nothing removes it.
std::string mark_corrupt(FileSystem& files, const std::string& prefix, const std::string& meta_suffix = "meta");

// Renames what a crash kept mark_corrupt() from renaming, and replaces nothing that it has renamed. No checkpoint is
// being written in the directory.
void complete_corrupt_sets(FileSystem& files, const std::string& directory);

// Whether mark_corrupt() of `base` is not at its end: the index has its new name, and not all data. `names`: of the
// directory, sorted.
bool is_half_corrupt(const std::vector<std::string>& names, const std::string& base);

// The prefixes of those in `directory`, by the time when they were committed, the oldest first.
std::vector<std::string> corrupt_sets(FileSystem& files, const std::string& directory);

// Removes the oldest, so that `keep` of them stay.
void remove_corrupt_sets(FileSystem& files, const std::string& directory, size_t keep);

}  // namespace longhaul
