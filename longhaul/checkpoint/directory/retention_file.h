#pragma once

#include <map>
#include <optional>
#include <string>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"

namespace longhaul {

// Why a checkpoint is kept, other than for being one of the newest.
struct KeptCheckpoint {
  bool pinned = false;
  std::optional<double> metric;  // given when it was saved
  bool fallen_out = false;       // it is none of the newest any more
  bool operator==(const KeptCheckpoint&) const = default;
};
using KeptCheckpoints = std::map<std::string, KeptCheckpoint>;  // by prefix

// The file `checkpoint.retention` beside the state file, whose own format has no room for it
// (docs/formats/checkpoint_retention.md).
std::string retention_path(const std::string& directory, const std::string& latest_filename = kDefaultStateFile);

// The prefixes in `kept` lie in `directory`; they are written relative to it. Replaces the file whole.
// InvalidArgumentError: a name with a line break in it, or a longer one than files have.
void write_retention(FileSystem& files, const std::string& directory, const KeptCheckpoints& kept,
                     const std::string& latest_filename = kDefaultStateFile);

// Before a checkpoint is written that the file could not tell of, or that would replace what it tells.
// FailedPreconditionError: it is a directory. PermissionDeniedError: this user may not read it.
void check_retention_file(FileSystem& files, const std::string& directory,
                          const std::string& latest_filename = kDefaultStateFile);

// nullopt where there is no such file. One that cannot be used is reported in the log and counts as none. A line with a
// name that is none of a file in the directory ("../m-1") is refused, with a warning.
std::optional<KeptCheckpoints> find_retention(FileSystem& files, const std::string& directory,
                                              const std::string& latest_filename = kDefaultStateFile);

// Empty where there is none.
KeptCheckpoints read_retention(FileSystem& files, const std::string& directory,
                               const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
