#pragma once

#include <string>
#include <utility>

#include "longhaul/base/clock.h"

namespace longhaul {

// Which checkpoints a restart may restore, and whether it initialises variables that they lack.
struct RecoveryOptions {
  // Whether a restart may restore checkpoints that no state file lists. false, as in TensorFlow: it restores only
  // checkpoints listed in the state file of the directory or of the mirror. If the directory's state file is removed,
  // training then starts from the beginning, ignores the mirror, and replaces old checkpoints of the same names.
  // DataLossError: the state file cannot be used (empty, damaged, a dangling link), or all its checkpoints are damaged.
  bool search_directory = true;
  // For a saver that omits global variables: whether a restart, after the restore, runs the initializers of those that
  // ready_op reports as not initialised.
  bool initialize_missing = false;
};

// Why a restart does not restore an intact checkpoint as long as there is another one.
struct SkipReason {
  SkipReason(std::string reason, bool doubts_model = false) : why(std::move(reason)), is_doubtful(doubts_model) {}

  std::string why;
  // Its values may be bad, and those of a later one are no better: if none but such are left, the oldest is restored.
  bool is_doubtful;
};

// A second directory with checkpoints (train/checkpointing/checkpoint_mirror.h), which a restart searches too.
struct MirrorSearchOptions {
  std::string directory{};    // empty: none
  Seconds start_timeout{60};  // limit for searching it, in real time
};

}  // namespace longhaul
