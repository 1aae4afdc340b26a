#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "longhaul/checkpoint/retention/early_deletions.h"
#include "longhaul/checkpoint/retention/managed_checkpoints.h"
#include "longhaul/io/bucket_files.h"
#include "longhaul/train/checkpointing/checkpoint_mirror.h"
#include "longhaul/train/coordination/chief_lock.h"

namespace longhaul {

// The directory of a mirror, as the one who copies has it: its lock, the list of what is there, and the room on its
// disk. Before each change it is checked that both directories are still this chief's. One thread at a time.
class MirrorDirectory {
 public:
  // Of the checkpoints in `mirrored`. The mirror's directory is absolute. The files and the clock outlive it.
  MirrorDirectory(std::string mirrored, const MirrorOptions& options, FileSystem& files, Clock& clock);

  std::string path_of(const std::string& prefix) const;  // of its copy

  // Makes the directory, once, locks it, and takes over its list. DirectoryLockedError: it has another owner;
  // DirectoryLostError: one of the two is another's by now; DirectoryAwayError: one of the two is not there.
  void take();
  void give_back() { lock_.reset(); }

  // Copies a checkpoint, for which it makes room. Returns how many bytes it wrote; nullopt: it was there.
  // `before_piece` may throw, which ends it.
  std::optional<uint64_t> copy(const std::string& from, const std::function<void()>& before_piece);
  // Has the list name the copy, and deletes what the rule drops.
  void record(const std::string& from);

  bool has_lost_mirrored() const;  // the directory that is mirrored is another's by now
  bool is_mirrored_away() const;   // it cannot be said to be there, and ours

 private:
  void make();
  void leave_if_lost();
  void take_over_list();
  void check_mirrored() const;
  void check_owners() const;
  ManagedCheckpoints::RecordOptions record_options(const std::string& from) const;

  const std::string mirrored_;
  const MirrorOptions& options_;
  FileSystem& files_;
  Clock& clock_;
  mutable BucketFiles mirror_files_;
  std::unique_ptr<ChiefLock> lock_;
  std::unique_ptr<ManagedCheckpoints> managed_;  // null: not known yet
  std::unique_ptr<EarlyDeletions> early_deletions_;
  bool has_been_made_ = false;
  bool has_list_ = false;  // written by this process
};

}  // namespace longhaul
