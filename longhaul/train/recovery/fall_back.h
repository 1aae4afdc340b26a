#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/train/saving/recovery_options.h"
#include "longhaul/train/saving/saver.h"

namespace longhaul {

class Deadline;

struct FallBackOptions {
  FileSystem* files = &FileSystem::real();
  std::string directory{};
  MirrorSearchOptions mirror{};  // searched too
  // Ends the search of the mirror too, even if it is set during the search: what a preemption leaves. nullptr: none.
  const Deadline* deadline = nullptr;
  std::string basename{};  // limits the checkpoints that count; empty: all do
  // Why a checkpoint is not to be restored even if it is intact; nullopt: it may be. Empty: all may be.
  std::function<std::optional<SkipReason>(const std::string& prefix)> skip_reason{};
  // Without search_directory: only checkpoints in the state file, or in the mirror's own, count (listed_candidates()).
  // initialize_missing is the caller's business.
  RecoveryOptions recovery{};
};

struct FallBack {
  std::optional<std::string> restored;  // nullopt: there is no checkpoint
  std::vector<std::string> damaged;     // newer than the restored one, or seen to be incomplete
  std::vector<std::string> skipped;     // newer as well; some may have been tried and failed
};

// Restores the newest intact checkpoint of a directory or of its mirror:
//   1. The candidates are in the order of checkpoint_candidates(), which finds them even if the state file is empty,
//      damaged, missing, or edited by hand; with a mirror, in that of mirrored_candidates(). Those that should be
//      skipped are tried last: one of them is better than none. Of these, doubtful ones (SkipReason) come last of all,
//      and the oldest of them first.
//   2. The first one that can be read, with correct checksums, is restored. A damaged one (DataLossError) is logged
//      with the defect, and so is one that the state file or the retention file names but that lacks its data files or
//      its index (named_checkpoints.h). If one fails for lack of memory, or with an exception of a foreign class, it is
//      logged and skipped, because it may or may not be damaged. Any other error is thrown: either no checkpoint would
//      fit (shapes differ), or a retry may help. Nothing was renamed then.
//   3. Only after one was restored, damaged ones are renamed (checkpoint/files/corrupt_set.h), so that no restart tries
//      them again; otherwise a restart would take a directory of damaged checkpoints for an empty one. Only the
//      process that has locked the directory (io/lock/directory_lock.h) does so, and only in it and its mirror. A
//      failure to rename is logged.
//   4. Of the renamed ones, the last kCorruptSetsKept are kept in each of the two.
// A mirror that cannot be searched or read, or does not answer in time, is logged and skipped. If nothing else is left,
// that is an UnavailableError: training must not start from scratch because a disk is not mounted. DataLossError: there
// are checkpoints but none is intact. UnimplementedError: they are of version V1. A warning says if the state file
// names checkpoints of which no file exists. FailedPreconditionError, PermissionDeniedError: check_state_file()'s and
// check_retention_file()'s. Also DataLossError: the directory is not to be searched, and its state file cannot be used.
FallBack restore_newest_intact(Saver& saver, Session& session, const FallBackOptions& options);

}  // namespace longhaul
