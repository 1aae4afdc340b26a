#pragma once

#include <string>
#include <vector>

#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct FoundRun {
  std::string name{};  // as it is shown
  std::string directory{};
  bool operator==(const FoundRun&) const = default;
};

struct FoundRuns {
  std::vector<FoundRun> runs{};
  std::vector<std::string> notes{};  // what is not there, cannot be looked at, or is left out
};

// The directories with a journal, a checkpoint or an event file among these and what they contain, three levels deep.
// Hidden ones are left out, and one to which several names lead is there once.
FoundRuns find_runs(FileSystem& files, const std::vector<std::string>& directories);

}  // namespace longhaul::console
