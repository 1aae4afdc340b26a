#pragma once

#include <functional>
#include <optional>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

class RunJournal;

// A place to which the checkpoints of one training run are saved.
struct SaveTarget {
  Saver& saver;
  SaveAttempts& attempts;  // records the outcome
  std::string save_path;
  Output global_step;             // in the name of the checkpoint; invalid: none
  FileWriter* writer = nullptr;   // gets events of saves with a step, and of failures
  RunJournal* journal = nullptr;  // likewise
  // The training time that a save cost; empty: the time that training may have waited for the snapshot.
  std::function<SaveCosts(const SaveReport&)> costs = {};
  // Called if a checkpoint is written, before its first byte: to announce it.
  std::function<void(std::optional<int64_t> step)> before_write = {};
  bool relative_paths = false;  // SaveOptions::relative_paths
};

// Takes a checkpoint and returns its prefix. One that is on the disk already, byte for byte, is not written again
// (SaveOptions::skip_if_saved).
//
// nullopt: the files could not be written. The failure is counted, logged, and written to the event file (a message,
// and the scalar checkpoint/failed_saves), and partial files are removed. Throws only errors that end training: those
// of the session, DirectoryLostError, and those of SaveAttempts::raise_if_too_many().
std::optional<std::string> save_once(const SaveTarget& target, Session& session);

// Takes the checkpoint at the end of training, with retries by SaveAttempts::insist(), whose errors it throws.
// `timeout` and the deadline limit the retries; absent: SaveAttemptsOptions::last_save_timeout.
std::string save_last(const SaveTarget& target, Session& session, std::optional<Seconds> timeout = std::nullopt,
                      const Deadline* deadline = nullptr);

}  // namespace longhaul
