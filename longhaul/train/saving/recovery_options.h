#pragma once

#include <string>

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

// A second directory with checkpoints (train/checkpointing/checkpoint_mirror.h), which a restart searches too.
struct MirrorSearchOptions {
  std::string directory{};    // empty: none
  Seconds start_timeout{60};  // limit for searching it, in real time
};

}  // namespace longhaul
