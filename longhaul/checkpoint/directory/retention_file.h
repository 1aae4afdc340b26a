#pragma once

#include <map>
#include <optional>
#include <string>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"

namespace longhaul {

// Reasons to keep a checkpoint, other than being one of the newest.
struct KeptCheckpoint {
  bool pinned = false;
  std::optional<double> metric;  // passed when it was saved
  bool fallen_out = false;       // it is no longer one of the newest
  bool operator==(const KeptCheckpoint&) const = default;
};
using KeptCheckpoints = std::map<std::string, KeptCheckpoint>;  // by prefix

// The file `checkpoint.retention` next to the state file, whose own format has no place for this
// (docs/formats/checkpoint_retention.md).
std::string retention_path(const std::string& directory, const std::string& latest_filename = kDefaultStateFile);

// The prefixes in `kept` must lie in `directory`; they are written relative to it. Replaces the file atomically.
// InvalidArgumentError: a name with a line break, or longer than file names can be.
void write_retention(FileSystem& files, const std::string& directory, const KeptCheckpoints& kept,
                     const std::string& latest_filename = kDefaultStateFile);

// Call it before writing a checkpoint. FailedPreconditionError: the file is a directory. PermissionDeniedError: this
// user may not read it, so recording the checkpoint would overwrite its contents.
void check_retention_file(FileSystem& files, const std::string& directory,
                          const std::string& latest_filename = kDefaultStateFile);

// nullopt: there is no such file. An unusable one is logged and treated as missing. A line whose name is not that of a
// file in the directory ("../m-1") is refused, with a warning.
std::optional<KeptCheckpoints> find_retention(FileSystem& files, const std::string& directory,
                                              const std::string& latest_filename = kDefaultStateFile);

// Empty if there is none.
KeptCheckpoints read_retention(FileSystem& files, const std::string& directory,
                               const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
