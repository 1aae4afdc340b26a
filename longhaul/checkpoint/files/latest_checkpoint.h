#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// The checkpoints of `directory` in the order in which a restore should try them. All their files exist; they may still
// be damaged.
//   1. A checkpoint of a later step than the state file's, committed after that file was written: the process died
//      before it could replace the file.
//   2. The latest one in the state file, then its others, newest first. If the file names checkpoints of another
//      directory and `directory` has them too, it is a copy, and its own are taken. If the latest does not exist, a
//      warning is logged, and all checkpoints that the file lists, and all in the directory with such names, are sorted
//      by step, newest first.
//   3. All others in the directory with a step, newest first. Without a usable state file, there are only these and 4.
//   4. The checkpoint named exactly `basename`: training without a step saves under this name.
// `basename` ("model.ckpt") restricts the checkpoints that are taken from the directory; empty: all.
std::vector<std::string> checkpoint_candidates(FileSystem& files, const std::string& directory,
                                               const std::string& basename = "",
                                               const std::string& latest_filename = kDefaultStateFile);

// The checkpoints named in the state file of `directory`, the latest first, whether they exist or not; empty: there is
// no state file. For training runs in which only the state file counts. DataLossError: the file is unusable.
std::vector<std::string> listed_prefixes(FileSystem& files, const std::string& directory);

// Those of listed_prefixes() that exist. With a mirror, each is followed by its copy if the mirror's own state file
// names the copy.
std::vector<std::string> listed_candidates(FileSystem& files, const std::string& directory,
                                           const std::string& mirror = "");

// The first of the candidates; nullopt: there is none.
std::optional<std::string> latest_checkpoint(FileSystem& files, const std::string& directory,
                                             const std::string& latest_filename = kDefaultStateFile);

// The checkpoints of `directory` and of its mirror (train/checkpointing/checkpoint_mirror.h) in the order in which a
// restore should try them: both lists of checkpoint_candidates(), merged so that the later step is first and, if the
// steps are equal, the one of `directory`. If the first candidate of `directory` does not have the latest step there,
// its state file says so deliberately, and all of `directory` precede those of the mirror. Throws the errors of reading
// the mirror.
std::vector<std::string> mirrored_candidates(FileSystem& files, const std::string& directory, const std::string& mirror,
                                             const std::string& basename = "");

}  // namespace longhaul
