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

// A place that checkpoints of one training are saved to.
struct SaveTarget {
  Saver& saver;
  SaveAttempts& attempts;  // learns how it went
  std::string save_path;
  Output global_step;             // in the name of the checkpoint; invalid: none
  FileWriter* writer = nullptr;   // is told of what was written, if it has a step, and of failures
  RunJournal* journal = nullptr;  // as above
  // What a save has cost the training; empty: as long as it may have waited for the snapshot.
  std::function<SaveCosts(const SaveReport&)> costs = {};
  // Called if a checkpoint is written, before its first byte: to say so.
  std::function<void(std::optional<int64_t> step)> before_write = {};
  bool relative_paths = false;  // SaveOptions::relative_paths
};

// Takes a checkpoint and returns its prefix. What is on the disk already, byte for byte, is not written again
// (SaveOptions::skip_if_saved).
//
// nullopt: the files could not be written. That is counted, logged, and told to the event file (a message, and the
// scalar checkpoint/failed_saves), and what was written of it is gone. Thrown is what ends a training: what the session
// throws; DirectoryLostError; and what SaveAttempts::raise_if_too_many() does.
std::optional<std::string> save_once(const SaveTarget& target, Session& session);

// The checkpoint at the end of a training, tried again as SaveAttempts::insist() does, whose errors it throws.
// `timeout` bounds that; absent: SaveAttemptsOptions::last_save_timeout.
std::string save_last(const SaveTarget& target, Session& session, std::optional<Seconds> timeout = std::nullopt);

}  // namespace longhaul
