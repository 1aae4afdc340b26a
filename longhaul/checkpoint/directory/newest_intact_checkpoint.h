#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/file.h"

namespace longhaul {

struct SkippedCheckpoint {
  std::string prefix;
  std::string why;
};
struct IntactCheckpoint {
  std::optional<std::string> prefix;       // nullopt: there is none
  std::vector<SkippedCheckpoint> skipped;  // newer ones that are damaged
};

// The first of checkpoint_candidates() (checkpoint/files/latest_checkpoint.h) with only correct checksums. Reads all of
// it. A program that restores right away may instead go through checkpoint_candidates() and take the first that it can
// read: reading verifies the checksums too.
IntactCheckpoint newest_intact_checkpoint(FileSystem& files, const std::string& directory,
                                          const std::string& basename = "",
                                          const std::string& latest_filename = kDefaultStateFile);

}  // namespace longhaul
