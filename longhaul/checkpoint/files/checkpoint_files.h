#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// The files of a checkpoint, which is named by their common prefix ("runs/demo/model.ckpt-100"):
//   <prefix>.data-00000-of-00001   the tensors' bytes; several of them when several tasks wrote
//   <prefix>.meta                  the MetaGraph; may be missing
//   <prefix>.index                 names, dtypes, shapes, places, checksums. Written last: what has it, is committed.
// While a checkpoint is replaced by another of the same name, the old one lies under "<prefix>.aside" (set_aside.h).
// All functions find it there, so callers go on using the plain prefix.

std::string index_path(const std::string& prefix);
std::string data_path(const std::string& prefix, int shard, int num_shards);

// The MetaGraph beside a checkpoint: "model.ckpt-5.meta". The name of a shard loses its ending: so does
// "model.ckpt-5-00000-of-00002", and "model.ckpt-5-?????-of-00002".
std::string meta_graph_filename(const std::string& checkpoint, const std::string& suffix = "meta");

// "model.ckpt-100" apart: "model.ckpt" and 100. No step: the whole text and nullopt.
struct BaseAndStep {
  std::string base;
  std::optional<int64_t> step;
};
BaseAndStep split_step(const std::string& prefix);

// The prefix under which the checkpoint lies at the moment: itself, or its aside. nullopt: it is not committed.
std::optional<std::string> committed_prefix(FileSystem& files, const std::string& prefix);

// Absolute and without "." and "..": one text for all spellings of a prefix, or of a directory, to compare them by.
// Symbolic links are not followed.
std::string canonical_prefix(const std::string& prefix);

// Where a checkpoint lies that the state file of `directory` names. A copied directory has a state file that names the
// original's checkpoints: then it is the copy of the same base name in `directory`, if there is one.
std::string prefix_in(FileSystem& files, const std::string& directory, const std::string& prefix);

// Whether there is a checkpoint of that name, with all its data files; a V1 checkpoint in one file (v1_checkpoint.h)
// counts too.
bool checkpoint_exists(FileSystem& files, const std::string& prefix);

// When each was committed, in seconds since 1970; those that do not exist (any more) are left out.
std::vector<double> checkpoint_mtimes(FileSystem& files, const std::vector<std::string>& prefixes);

// Removes all files of the checkpoint, the index first, so that half a checkpoint is never taken for a whole one; where
// it has none, and nothing is aside, those of a V1 checkpoint, and no file that is not recognised as one of these.
// Files that are gone already are no error.
void remove_checkpoint(FileSystem& files, const std::string& prefix, const std::string& meta_suffix = "meta");

struct FoundCheckpoint {
  std::string prefix;
  std::optional<int64_t> step;
  double modified_at = 0;
};

// The committed checkpoints in `directory` whose data files are all there, named `basename` or `basename`-<step>; with
// an empty basename all there are. By step, and among equals by time; those without a step first. A directory that does
// not exist has none. One that is removed meanwhile, by another process perhaps, is left out.
std::vector<FoundCheckpoint> find_checkpoints(FileSystem& files, const std::string& directory,
                                              const std::string& basename);

// The prefixes in `directory` that have an index and not all of its data files: damaged, since the index comes last and
// goes first. Named as find_checkpoints() takes them.
std::vector<std::string> incomplete_checkpoints(FileSystem& files, const std::string& directory,
                                                const std::string& basename);

// The name of a temporary file for `path`, used by no other file, in this process or another.
std::string temporary_path(const std::string& path);

// "m-1", if that is the name of a temporary file of "m-1.index".
std::optional<std::string> base_of_temporary_index(const std::string& name);

// Removes the temporary files that dead processes left of checkpoints with the basename of `prefix`, whatever their
// step; of all that have a step, if it is "directory/". Those of this process stay. The caller is the only process that
// saves under this basename.
void remove_stale_temporaries(FileSystem& files, const std::string& prefix);

// The paths of the data files of `prefix`, those set aside left out.
std::vector<std::string> data_files_of(FileSystem& files, const std::string& prefix);

// The same among the sorted `names` of a directory, by base names: "m-1.data-00000-of-00001" is one of "m-1".
std::vector<std::string> data_names_of(const std::vector<std::string>& names, const std::string& base);
std::optional<std::string> base_of_data_name(const std::string& name);  // nullopt: it is no data file's

// The base names in a directory, sorted; none where there is no directory.
std::vector<std::string> names_in(FileSystem& files, const std::string& directory);

// Removes a file that may be gone already.
void remove_if_exists(FileSystem& files, const std::string& path);

// Whether a checkpoint lies in that directory, and not below it, however the two are spelled. Symbolic links are not
// followed.
inline bool lies_in(const std::string& prefix, const std::string& directory) {
  return directory_name(canonical_prefix(prefix)) == canonical_prefix(directory);
}

}  // namespace longhaul
