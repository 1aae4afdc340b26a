#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/checkpoint/retention/early_deletions.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"
#include "longhaul/io/files/bucket_files.h"
#include "longhaul/io/files/rate_limit.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/coordination/chief_lock.h"

namespace longhaul {

// The directory of a mirror, for the thread that copies to it: its lock, the list of its checkpoints, and the room on
// its disk. Before each change it checks that this chief still owns both directories. One thread at a time may call.
class MirrorDirectory {
 public:
  // For the checkpoints in `mirrored`. The mirror's directory is absolute. The files and the clock outlive it.
  MirrorDirectory(std::string mirrored, const MirrorOptions& options, FileSystem& files, Clock& clock);

  std::string path_of(const std::string& prefix) const;  // of its copy

  // Creates the directory, once, locks it, and takes over its list, to which it adds a copy that a killed process has
  // not listed. DirectoryLockedError: it has another owner; DirectoryLostError: one of the two directories was taken
  // over; DirectoryAwayError: one of the two is missing. An exception from `pause` ends the reading of such a copy. One
  // that twice cannot be read stays as it is, unlisted; this is logged. `pause` is also called, with 0, before each
  // piece that is read or written.
  void take(const Pause& pause);
  void give_back() { lock_.reset(); }

  // Makes room for a checkpoint and copies it. Returns the number of bytes written; nullopt: the copy exists already.
  // An exception from `pause` ends the copy.
  std::optional<uint64_t> copy(const std::string& from, const Pause& pause);
  // Adds the copy to the list, and deletes the checkpoints that the rule drops.
  void record(const std::string& from);

  bool has_lost_mirrored() const;  // the mirrored directory was taken over
  bool is_mirrored_away() const;   // it is not known to exist and to be ours

 private:
  void make();
  void leave_if_lost();
  void take_over_list(const Pause& pause);
  void list_what_was_copied(ManagedCheckpoints& managed, const Pause& pause);
  void list_or_remove(ManagedCheckpoints& managed, const std::string& copied, const Pause& pause) const;
  void note_unlisted(const std::string& name);
  void remove_note() const;
  void check_mirrored() const;
  void check_owners() const;
  ManagedCheckpoints::RecordOptions record_options(FileSystem& files, const std::string& prefix) const;

  const std::string mirrored_;
  const MirrorOptions& options_;
  FileSystem& files_;
  Clock& clock_;
  mutable BucketFiles mirror_files_;
  std::unique_ptr<ChiefLock> lock_;
  std::unique_ptr<ManagedCheckpoints> managed_;  // null: not known yet
  std::unique_ptr<EarlyDeletions> early_deletions_;
  bool has_been_made_ = false;
  bool has_list_ = false;    // written by this process
  int failed_listings_ = 0;  // of the copy that is noted as not listed
};

}  // namespace longhaul
