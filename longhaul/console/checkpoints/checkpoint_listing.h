#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// A checkpoint in a directory, or what is left of one.
struct ListedCheckpoint {
  enum class State {
    kComplete,   // all of its files are there
    kLacksData,  // an index without all of its data files: damaged
    kDamaged,    // its index cannot be read, or wants more bytes than its data files have
    kSetAside,   // found damaged by a restore or a read-back, and renamed to .corrupt
    kNoIndex,    // data without an index: being written, or left by a crash
  };
  std::string prefix{};
  std::optional<int64_t> step{};
  State state = State::kComplete;
  double modified_at = 0;  // seconds since 1970; 0: not known
  uint64_t bytes = 0;      // of all of its files
  bool is_latest = false;  // a restart takes it first
  bool is_pinned = false;
  std::optional<double> metric{};
  std::string damage{};  // of kDamaged: what is wrong
};

// Sorted by step, those without a step first. Reads names, times, sizes and indexes, but no tensors. A checkpoint that
// somebody removes meanwhile is left out. NotFoundError: there is no such directory.
std::vector<ListedCheckpoint> checkpoints_in(FileSystem& files, const std::string& directory);

// What a restart takes first, if it is not in this directory: its state file names another's, as a copied one does.
std::optional<std::string> latest_elsewhere(FileSystem& files, const std::string& directory);

// longhaul ls: a table for each directory. Of several, one that cannot be listed does not keep the others from it; then
// something is wrong.
Report list_checkpoints(FileSystem& files, const std::vector<std::string>& directories, double now,
                        const Terminal& terminal);

}  // namespace longhaul::console
