#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"

namespace longhaul {

// The checkpoints of `directory` in the order in which a restore should try them. All their files exist; they may still
// be damaged.
//   1. A checkpoint of a later step than the state file's, committed after that file was written: the process died in
//      between.
//   2. The latest one in the state file, then its others, newest first. Those of another directory are taken from this
//      one if it has them: it is a copy of the other. If the latest does not exist, which a warning says, all that the
//      file lists and all in the directory with such names are sorted by step, newest first.
//   3. All others in the directory with a step, newest first; only these, and 4, if there is no usable state file.
//   4. The one named exactly `basename`: the name under which training without a step saves.
// `basename` ("model.ckpt") limits which ones are taken from the directory; empty: all.
std::vector<std::string> checkpoint_candidates(FileSystem& files, const std::string& directory,
                                               const std::string& basename = "",
                                               const std::string& latest_filename = kDefaultStateFile);

// The checkpoints named in the state file of `directory`, the latest first, whether they exist or not; empty: there is
// no such file. For training runs for which only the state file counts. DataLossError: the file is unusable.
std::vector<std::string> listed_prefixes(FileSystem& files, const std::string& directory);

// The existing ones among these; with a mirror, each followed by its copy, if the mirror's own state file names that
// too.
std::vector<std::string> listed_candidates(FileSystem& files, const std::string& directory,
                                           const std::string& mirror = "");

// The first of the candidates; nullopt: there is none.
std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory,
                                             const std::string& latest_filename = kDefaultStateFile);

// The checkpoints of `directory` and of its mirror (train/checkpointing/checkpoint_mirror.h) in the order in which a
// restore should try them: those of each in the order of checkpoint_candidates(), merged with the later step first, and
// with the one of `directory` first if the steps are equal. If the first of `directory` is not of the latest step
// there, that is deliberate (its state file says so), and all of `directory` come before the mirror's. Errors of the
// mirror are thrown.
std::vector<std::string> mirrored_candidates(FileSystem& files, const std::string& directory, const std::string& mirror,
                                             const std::string& basename = "");

}  // namespace longhaul
