#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The files of a checkpoint, which is named by their common prefix ("runs/demo/model.ckpt-100"):
//   <prefix>.data-00000-of-00001   the tensors' bytes; several files if several tasks wrote
//   <prefix>.meta                  the MetaGraph; may be missing
//   <prefix>.index                 names, dtypes, shapes, places, checksums. Written last: it marks the commit.
// While a checkpoint is being replaced by another of the same name, the old one has the prefix "<prefix>.aside"
// (set_aside.h). All functions find it there, so callers keep using the plain prefix.

std::string index_path(const std::string& prefix);
std::string data_path(const std::string& prefix, int shard, int num_shards);

// The path of a checkpoint's meta graph: "model.ckpt-5.meta". The suffix of a shard is dropped first, so that
// "model.ckpt-5-00000-of-00002" and "model.ckpt-5-?????-of-00002" give the same path.
std::string meta_graph_filename(const std::string& checkpoint, const std::string& suffix = "meta");

// Splits "model.ckpt-100" into "model.ckpt" and 100. Without a step: the whole text and nullopt.
struct BaseAndStep {
  std::string base;
  std::optional<int64_t> step;
};
BaseAndStep split_step(const std::string& prefix);

// The prefix under which the checkpoint is at the moment: its own, or the one with ".aside". nullopt: it is not
// committed.
std::optional<std::string> committed_prefix(FileSystem& files, const std::string& prefix);

// The absolute path without "." and "..", which is the same for all spellings of a prefix or a directory. For
// comparisons. Symbolic links are not followed.
std::string canonical_prefix(const std::string& prefix);

// The place of a checkpoint that the state file of `directory` names. If the directory is a copy, its state file names
// the checkpoints of the original. The result is then the checkpoint with the same base name in `directory`, if any
// of its index and data files is there: of a copy that is not whole, the original does not take the place.
std::string prefix_in(FileSystem& files, const std::string& directory, const std::string& prefix);

// Whether a checkpoint of that name exists with all its data files. A V1 checkpoint in one file (v1_checkpoint.h)
// counts too.
bool checkpoint_exists(FileSystem& files, const std::string& prefix);

// The times at which the checkpoints were committed, in seconds since 1970. Checkpoints that do not exist are left out.
std::vector<double> checkpoint_mtimes(FileSystem& files, const std::vector<std::string>& prefixes);

// Removes all files of the checkpoint, the index first, so that a partial checkpoint is never taken for an intact one.
// If there is no index and nothing is set aside, removes the files of a V1 checkpoint. Files that are not recognised as
// one of these stay. It is not an error if a file is already gone.
void remove_checkpoint(FileSystem& files, const std::string& prefix, const std::string& meta_suffix = "meta");

struct FoundCheckpoint {
  std::string prefix;
  std::optional<int64_t> step;
  double modified_at = 0;
};

// The committed checkpoints in `directory` whose data files are all there, named `basename` or `basename`-<step>; with
// an empty basename, all of them. Sorted by step, then by time; those without a step first. Empty if the directory does
// not exist. Checkpoints that another process removes during the call are left out.
std::vector<FoundCheckpoint> find_checkpoints(FileSystem& files, const std::string& directory,
                                              const std::string& basename);

// The prefixes in `directory` that have an index but lack some of its data files. They are damaged, since the index is
// written last and removed first. Filtered by name as in find_checkpoints().
std::vector<std::string> incomplete_checkpoints(FileSystem& files, const std::string& directory,
                                                const std::string& basename);

// The name of a temporary file for `path`, unique across processes.
std::string temporary_path(const std::string& path);

// Whether the path ends in such a name for a data file.
bool is_temporary_data(const std::string& path);

// The beginning of the names of files that tell which tasks see a directory (train/saving/directory_probe.h).
inline constexpr std::string_view kDirectoryProbe = "longhaul.probe-";

// "m-1" if `name` is that of a temporary file of "m-1.index"; else nullopt.
std::optional<std::string> base_of_temporary_index(const std::string& name);

// Removes the temporary files that dead processes left for checkpoints with the basename of `prefix`, whatever their
// step; if `prefix` is "directory/", for all checkpoints with a step. Files of this process stay. The caller must be
// the only process that saves under this basename.
void remove_stale_temporaries(FileSystem& files, const std::string& prefix);

// The paths of the data files of `prefix`, without those that are set aside.
std::vector<std::string> data_files_of(FileSystem& files, const std::string& prefix);

// The same, but as base names, from the sorted `names` in a directory: "m-1.data-00000-of-00001" is a data file of
// "m-1".
std::vector<std::string> data_names_of(const std::vector<std::string>& names, const std::string& base);
std::optional<std::string> base_of_data_name(const std::string& name);  // nullopt: not a data file

// The base names in a directory, sorted; empty if it does not exist.
std::vector<std::string> names_in(FileSystem& files, const std::string& directory);

// Removes a file if it exists.
void remove_if_exists(FileSystem& files, const std::string& path);

// Whether a checkpoint lies directly in that directory, however the two are spelled. Symbolic links are not followed.
inline bool lies_in(const std::string& prefix, const std::string& directory) {
  return directory_name(canonical_prefix(prefix)) == canonical_prefix(directory);
}

}  // namespace longhaul
