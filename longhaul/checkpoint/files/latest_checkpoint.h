#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"

namespace longhaul {

// The checkpoints of `directory` in the order in which a restore should try them. All their files are there; whether
// they are undamaged is not known yet.
//   1. A checkpoint of a later step than the state's, committed after the state file was written: the process died in
//   between.
//   2. The one that the state file names as the latest, then its others, newest first. Those of another directory are
//   taken from this one where it has them: it is a copy of the other. Where the latest is not there, which a warning
//   says, all that it lists, and all of the directory with such names, go by their steps, newest first.
//   3. All others in the directory that have a step, newest first; only these, and 4, if there is no usable state file.
//   4. The one named exactly `basename`: what is trained without a step is saved under that name.
// `basename` ("model.ckpt") limits what is taken from the directory; empty: all.
std::vector<std::string> checkpoint_candidates(FileSystem& files, const std::string& directory,
                                               const std::string& basename = "",
                                               const std::string& latest_filename = kDefaultStateFile);

// What the state file of `directory` names, the latest first, whether it is there or not; empty: there is no such file.
// For a training of which only that counts. DataLossError: there is one, and it cannot be used.
std::vector<std::string> listed_prefixes(FileSystem& files, const std::string& directory);

// Of those the ones that are there; with a mirror, each before its copy, if the mirror's own state file names that too.
std::vector<std::string> listed_candidates(FileSystem& files, const std::string& directory,
                                           const std::string& mirror = "");

// The first of the candidates; nullopt where there is none.
std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory,
                                             const std::string& latest_filename = kDefaultStateFile);

// The checkpoints of `directory` and of its mirror (train/checkpointing/checkpoint_mirror.h) in the order in which a
// restore should try them: those of each in the order of checkpoint_candidates(), the later step first, and of two with
// the same step the one of `directory`. If the first of `directory` is none of the latest step there, somebody has said
// so in its state file, and all of `directory` come before the mirror's. What is wrong with the mirror is thrown.
std::vector<std::string> mirrored_candidates(FileSystem& files, const std::string& directory, const std::string& mirror,
                                             const std::string& basename = "");

}  // namespace longhaul
