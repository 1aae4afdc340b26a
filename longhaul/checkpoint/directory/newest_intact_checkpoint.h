#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/files/file.h"

namespace longhaul {

struct SkippedCheckpoint {
  std::string prefix;
  std::string why;
};
struct IntactCheckpoint {
  std::optional<std::string> prefix;       // nullopt: there is none
  std::vector<SkippedCheckpoint> skipped;  // newer ones that are damaged
};

// Returns the first of checkpoint_candidates() (checkpoint/files/latest_checkpoint.h) whose checksums are all correct.
// Reads the whole checkpoint. A program that is about to restore may instead try each of checkpoint_candidates() and
// take the first that it can read, because reading verifies the checksums too.
IntactCheckpoint newest_intact_checkpoint(FileSystem& files, const std::string& directory,
                                          const std::string& basename = "",
                                          const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
