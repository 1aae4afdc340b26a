#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

// The checkpoints in a directory and the folders in it, three deep; empty if it does not exist. Sorted by the folder,
// then as find_checkpoints() does.
std::vector<FoundCheckpoint> checkpoints_below(FileSystem& files, const std::string& directory);

// Of those, for each folder and base name ("eval/model.ckpt") the one with the latest step. The key is below the
// directory: the same in another run's.
std::map<std::string, FoundCheckpoint> newest_below(FileSystem& files, const std::string& directory);

// The checkpoint from which a start would go on: the one that was committed last; nullopt: there is none.
std::optional<FoundCheckpoint> last_committed(FileSystem& files, const std::string& directory);

// Tells of each checkpoint once: a name that is written again is a new one.
class CheckpointWatch {
 public:
  CheckpointWatch(FileSystem& files, std::string directory) : files_(files), directory_(std::move(directory)) {}

  // Those that appeared since the last call.
  std::vector<FoundCheckpoint> look();

 private:
  FileSystem& files_;
  const std::string directory_;
  std::map<std::string, double> seen_;  // the time of each
};

// Where a Trainer's checkpoint is in its epoch.
struct EpochPosition {
  int64_t size = 0;   // batches; 0: no whole epoch was seen yet
  int64_t taken = 0;  // of them
};
std::optional<EpochPosition> epoch_position_in(FileSystem& files,
                                               const std::string& prefix);  // nullopt: not a Trainer's

// The last lines of a text file, each cut where it is very long; empty if there is no such file.
std::string last_lines(FileSystem& files, const std::string& path, size_t most = 12);

}  // namespace longhaul
