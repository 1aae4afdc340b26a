#pragma once

#include <string>
#include <vector>

#include "longhaul/io/file.h"

namespace longhaul {

// The file `checkpoint` in a directory of checkpoints: which of them is the latest, and which there are
// (docs/formats/checkpoint_state.md).
struct CheckpointState {
  std::string model_checkpoint_path;                    // the latest
  std::vector<std::string> all_model_checkpoint_paths;  // oldest first; the last one is the latest
  std::vector<double> all_model_checkpoint_timestamps;  // empty, or one for each path: seconds since 1970
  double last_preserved_timestamp = 0;                  // 0: none
  std::vector<std::string> paths_marked_for_deletion;   // being deleted: what a crash leaves of them is nobody's
  bool operator==(const CheckpointState&) const = default;
};

inline constexpr const char* kDefaultStateFile = "checkpoint";

// The state as the file has it: paths are relative to `directory` where that is relative itself, and the latest path is
// appended to the others if it is not their last. InvalidArgumentError: another number of timestamps than of paths.
CheckpointState make_checkpoint_state(const std::string& directory, CheckpointState state);

// Replaces the state file: after a crash at any moment there is the old state or the new one. With `relative_paths` the
// absolute paths are written relative to the directory too, so that it can be moved. InvalidArgumentError: as above;
// the latest checkpoint has the state file's own name ("conflicts with"). Others: check_state_file()'s.
void write_checkpoint_state(FileSystem& files, const std::string& directory, const CheckpointState& state,
                            bool relative_paths = false, const std::string& latest_filename = kDefaultStateFile);

// Before a checkpoint is written that the state file could not name. FailedPreconditionError: it is a directory.
void check_state_file(FileSystem& files, const std::string& directory,
                      const std::string& latest_filename = kDefaultStateFile);

struct ReadCheckpointState {
  enum class Status {
    kRead,
    kMissing,   // no such file: a fresh directory, or one whose checkpoints were copied without it
    kUnusable,  // there is one, but it is empty, damaged, too large, a link to nothing or cannot be read: look for
                // checkpoints yourself
  };
  Status status = Status::kMissing;
  CheckpointState state;  // relative paths are completed with the directory
  std::string why;        // kUnusable: for a message
};

// Names with a NUL, or longer than any path, are skipped with a warning.
ReadCheckpointState read_checkpoint_state(FileSystem& files, const std::string& directory,
                                          const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
