#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/console/checkpoints/checkpoint_listing.h"
#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/console/trainings/training_records.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

// The state of a directory in which there is none: no checkpoint, no journal, no chief.
inline constexpr char kNoTraining[] = "no training";

// How a training stands, by the files of its directory alone. Times are in seconds since 1970.
struct TrainingStatus {
  std::string directory{};
  std::string
      state{};  // "training", "restoring", "ended", "failed", "killed", "stopped" (by SIGSTOP), "no training", ...
  ChiefRecord chief{};
  JournalRecord journal{};
  std::optional<int64_t> step{};                 // the newest that the journal or a checkpoint tells
  std::optional<double> steps_per_sec{};         // in the last minute of the newest run
  std::optional<ListedCheckpoint> checkpoint{};  // that a restart takes first
  std::optional<double> ended_at{};              // of a run that is over, as far as the journal tells
  uint64_t free_bytes = 0;
  std::optional<std::string> failing_saves{};  // one of the problems: what the last saves failed with
  std::vector<std::string> problems{};         // each with what to do about it
  std::vector<std::string> notes{};            // what is worth knowing, and not wrong
};

// Errors become problems, also that there is no such directory. Reads no tensors, and writes nothing.
TrainingStatus status_of(FileSystem& files, const std::string& directory, double now);

// longhaul status: a block of lines for each directory. Something is wrong if one has a problem.
Report show_status(FileSystem& files, const std::vector<std::string>& directories, double now,
                   const Terminal& terminal);

}  // namespace longhaul::console
