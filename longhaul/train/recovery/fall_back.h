#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/clock.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

struct FallBackOptions {
  FileSystem* files = &FileSystem::real();
  std::string directory;
  std::string mirror;          // searched as well (train/checkpointing/checkpoint_mirror.h); empty: there is none
  Seconds mirror_timeout{60};  // for how long, of real time
  std::string basename;        // which checkpoints of the directory count; empty: all
  // Why one is not to be restored though it may be whole; nullopt: it may be. Empty: all may be.
  std::function<std::optional<std::string>(const std::string& prefix)> skip_reason;
  // false: only what the state file lists counts, and of the mirror what its own lists as well (listed_candidates()).
  bool search_directory = true;
};

struct FallBack {
  std::optional<std::string> restored;  // nullopt: there is no checkpoint
  std::vector<std::string> damaged;     // which would have come before, or were seen to be incomplete
  std::vector<std::string> skipped;     // which would have come before, too; they may have been tried, and have failed
};

// Restores the newest checkpoint of a directory, or of its mirror, that is whole:
//   1. The candidates are in the order of checkpoint_candidates(), which finds them also where the state file is empty,
//      damaged, missing, or edited by hand; with a mirror in that of mirrored_candidates(). Those that are to be passed
//      over come last: one of them is better than none.
//   2. The first that can be read, with all checksums right, is restored. One that is damaged (DataLossError) is logged
//      with what is wrong with it, and so is one that lacks data files, or its index, though the state file or that of
//      pins names it (named_checkpoints.h). One that fails for want of memory, or with an exception of a class that is
//      not ours, is logged and skipped: it may be damaged, or not. Any other error is thrown: it says that no
//      checkpoint would do (shapes that differ), or that trying again may help; nothing was renamed.
//   3. Only when one was restored, those that are damaged are renamed (checkpoint/files/corrupt_set.h), so that no
//   restart
//      tries them again; before that, a restart would take a directory of damaged checkpoints for an empty one. Only
//      the process that has the directory locked does so (io/directory_lock.h), and only with what lies in it or in its
//      mirror. One that cannot be renamed is logged.
//   4. Of those renamed the last kCorruptSetsKept stay, in each of the two.
// A mirror that cannot be searched or read, or does not answer in time, is logged and left out. Where nothing else is
// left, that is an UnavailableError: a training must not begin anew because a disk is not mounted.
// DataLossError: there are checkpoints, and none is whole. UnimplementedError: they are of version V1. Where the state
// file names checkpoints of which nothing is there, a warning says so. FailedPreconditionError,
// PermissionDeniedError: check_state_file()'s and check_retention_file()'s. DataLossError, too: the directory is not to
// be searched, and its state file cannot be used.
FallBack restore_newest_whole(Saver& saver, Session& session, const FallBackOptions& options);

}  // namespace longhaul
