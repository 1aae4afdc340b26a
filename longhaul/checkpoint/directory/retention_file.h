#pragma once

#include <map>
#include <optional>
#include <string>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// Reasons to keep a checkpoint, other than being one of the newest.
struct KeptCheckpoint {
  bool pinned = false;
  std::optional<double> metric;  // given when it was saved
  bool fallen_out = false;       // whether it is no longer one of the newest
  bool operator==(const KeptCheckpoint&) const = default;
};
using KeptCheckpoints = std::map<std::string, KeptCheckpoint>;  // by prefix

// The file `checkpoint.retention` next to the state file, whose format has no place for pins and metrics
// (docs/formats/checkpoint_retention.md).
std::string retention_path(const std::string& directory, const std::string& latest_filename = kDefaultStateFile);

// Replaces the file atomically. The prefixes in `kept` must be in `directory`; they are written relative to it.
// InvalidArgumentError: a name contains a line break, or is longer than file names can be.
void write_retention(FileSystem& files, const std::string& directory, const KeptCheckpoints& kept,
                     const std::string& latest_filename = kDefaultStateFile);

// Call this before writing a checkpoint. FailedPreconditionError: the file is a directory. PermissionDeniedError: this
// user may not read it, so recording the checkpoint would overwrite its contents.
void check_retention_file(FileSystem& files, const std::string& directory,
                          const std::string& latest_filename = kDefaultStateFile);

// nullopt: there is no such file. An unusable file is logged and treated as missing. A line with a name that is not
// that of a file in the directory ("../m-1") is refused, with a warning.
std::optional<KeptCheckpoints> find_retention(FileSystem& files, const std::string& directory,
                                              const std::string& latest_filename = kDefaultStateFile);

// The same for who is about to delete checkpoints, or to replace the file. FailedPreconditionError: it is there, but
// cannot be used, so that nobody knows what is pinned; the message has the remedy. `so`: what is not done,
// "nothing is deleted".
std::optional<KeptCheckpoints> usable_retention(FileSystem& files, const std::string& directory, const std::string& so,
                                                const std::string& latest_filename = kDefaultStateFile);

// The same as find_retention(), but empty if there is no file.
KeptCheckpoints read_retention(FileSystem& files, const std::string& directory,
                               const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
