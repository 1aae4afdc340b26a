#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "longhaul/console/text/report.h"
#include "longhaul/console/text/terminal.h"
#include "longhaul/io/files/file.h"

namespace longhaul::console {

struct PruneOptions {
  std::string directory{};
  size_t keep = 5;             // the newest so many, of each name ("model.ckpt")
  int64_t keep_multiples = 0;  // keeps those whose step is a multiple of it; 0: none for that
  bool deletes = false;        // false: only says what would be deleted
};

// longhaul prune: deletes old checkpoints. Never the latest, what the state file names as such, a pinned one, one with
// a metric, one without a step, or what is no whole checkpoint.
//
//   0. The directory is locked, so that no training begins there. DirectoryLockedError: one is under way, and deletes
//      old checkpoints itself.
//   1. The retention file and the state file are read. FailedPreconditionError: one is there, but cannot be used:
//      nobody knows what is pinned, or which checkpoint is named.
//   2. The latest checkpoint is read, with `progress`. DataLossError: it, or a newer one, is damaged, and nothing
//      is deleted.
//   3. The state file marks the others for deletion, and no longer lists them.
//   4. They are deleted, the index first; then the state file no longer marks them.
//
// A crash at any moment leaves whole checkpoints, and files of marked ones, which the next chief removes.
//
// A disk that is full has room neither for the lock's record (0) nor for the marks (3). Then the oldest of those
// that are to go makes room first (room_on_full_disk.h), and without marks more of them do. ResourceExhaustedError:
// that was not safe, or was not enough; the message says what was deleted, and what to do.
Report prune_checkpoints(FileSystem& files, const PruneOptions& options, const Terminal& terminal,
                         const Progress& progress = {});

}  // namespace longhaul::console
