#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul {

// The contents of the state file `checkpoint`: the checkpoints of a directory, and the latest one
// (docs/formats/checkpoint_state.md).
struct CheckpointState {
  std::string model_checkpoint_path;                    // the latest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first; the last is the latest
  std::vector<double> all_model_checkpoint_timestamps;  // empty, or one for each path: seconds since 1970
  double last_preserved_timestamp = 0;                  // 0: none
  std::vector<std::string> paths_marked_for_deletion;   // being deleted; after a crash, some of their files may remain
  bool operator==(const CheckpointState&) const = default;
};

inline constexpr const char* kDefaultStateFile = "checkpoint";

// Returns the state in the form in which the file has it: paths are relative to `directory` if that is relative itself,
// and the latest path is appended to the others unless it is already the last. InvalidArgumentError: the numbers of
// timestamps and paths differ.
CheckpointState make_checkpoint_state(const std::string& directory, CheckpointState state);

// Replaces the state file. A crash at any moment leaves the old state or the new one. With `relative_paths`, absolute
// paths are also written relative to the directory, so that it can be moved. InvalidArgumentError: as above, or the
// latest checkpoint has the state file's own name ("conflicts with"). Other errors as in check_state_file().
void write_checkpoint_state(FileSystem& files, const std::string& directory, const CheckpointState& state,
                            bool relative_paths = false, const std::string& latest_filename = kDefaultStateFile);

// Call this before writing a checkpoint. FailedPreconditionError: the state file is a directory, so it could not name
// the checkpoint.
void check_state_file(FileSystem& files, const std::string& directory,
                      const std::string& latest_filename = kDefaultStateFile);

struct ReadCheckpointState {
  enum class Status {
    kRead,
    kMissing,   // no such file: a fresh directory, or one whose checkpoints were copied without it
    kUnusable,  // it is empty, damaged, too large, a dangling link or cannot be read: look for checkpoints yourself
  };
  Status status = Status::kMissing;
  CheckpointState state;  // relative paths are joined to the directory
  std::string why;        // kUnusable: for a message
};

// Skips names that contain a NUL or are longer than any path, with a warning.
ReadCheckpointState read_checkpoint_state(FileSystem& files, const std::string& directory,
                                          const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
