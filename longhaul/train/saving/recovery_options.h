#pragma once

#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// What counts at a restart, and what is done about variables that no checkpoint has.
struct RecoveryOptions {
  // Whether checkpoints that no state file names count. false, as in TensorFlow: only checkpoints listed in the state
  // file, or in the mirror's own, are restored. Removing that file then starts training from the beginning, ignoring
  // the mirror, and new checkpoints replace old ones of the same names. A state file that cannot be used (empty,
  // damaged, a dangling link) is a DataLossError, and so is one whose checkpoints are all damaged.
  bool search_directory = true;
  // For a saver that omits global variables: after a restore, the initializers of those that ready_op names as not
  // initialised are run.
  bool initialize_missing = false;
};

// A second directory with checkpoints (train/checkpointing/checkpoint_mirror.h), which a restart searches too.
struct MirrorSearchOptions {
  std::string directory{};    // empty: none
  Seconds start_timeout{60};  // limit for searching it, in real time
};

}  // namespace longhaul
