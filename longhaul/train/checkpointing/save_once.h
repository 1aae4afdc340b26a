#pragma once

#include <functional>
#include <optional>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/io/files/rate_limit.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/coordination/coordinator.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

class RunJournal;

// Where and how the checkpoints of one training run are saved.
struct SaveTarget {
  Saver& saver;
  SaveAttempts& attempts;  // records the outcome
  std::string save_path;
  Output global_step;             // in the name of the checkpoint; invalid: none
  FileWriter* writer = nullptr;   // gets an event for each save with a step, and for each failure
  RunJournal* journal = nullptr;  // records the same
  // Returns the training time that a save cost; empty: the time for which training may have waited for the snapshot.
  std::function<SaveCosts(const SaveReport&)> costs = {};
  // Called before the first byte of a checkpoint is written, to announce it. Not called if none is written.
  std::function<void(std::optional<int64_t> step)> before_write = {};
  bool relative_paths = false;  // SaveOptions::relative_paths
  // Limits the flush of the writer before a save (FileWriter::flush_before()); nullptr: none.
  const Deadline* deadline = nullptr;
  // SaveOptions::pause_for_limit, but for save_last(), to which the saver's limit does not apply.
  Pause pause = {};
};

// A Pause for saves of a training: a stop ends its wait and lifts the limit.
Pause pause_until_stop(const Coordinator& coord);

// Takes a checkpoint and returns its prefix. A checkpoint that is on the disk already, byte for byte, is not written
// again (SaveOptions::skip_if_saved).
//
// Returns nullopt if the files could not be written. The failure is then counted, logged, and written to the event file
// (as a message and as the scalar checkpoint/failed_saves), and partial files are removed. Throws only errors that end
// training: those of the session, DirectoryLostError, and those of SaveAttempts::raise_if_too_many().
std::optional<std::string> save_once(const SaveTarget& target, Session& session);

// Takes the final checkpoint, as fast as the disk allows. Retries through SaveAttempts::insist(), and throws its
// errors. `timeout` and the deadline limit the retries; absent: SaveAttemptsOptions::last_save_timeout.
std::string save_last(const SaveTarget& target, Session& session, std::optional<Seconds> timeout = std::nullopt,
                      const Deadline* deadline = nullptr);

}  // namespace longhaul
