#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/io/directory_id.h"
#include "longhaul/io/file.h"
#include "longhaul/io/file_lock.h"
#include "longhaul/io/owner_record.h"

namespace longhaul {

// The directory already has an owner. The message names it, says since when it has the directory, and what to do.
// Retrying helps only once that owner has ended.
class DirectoryLockedError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// The directory was this process's, and now has another owner. Retrying does not help.
class DirectoryLostError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// A directory that this process has locked is missing: it was unmounted, moved or removed, cannot be read, or its name
// now belongs to another directory. The message says what was expected and what is there. Meanwhile nothing is written
// or recreated. The directory is not lost: once it is back, refused operations work again.
class DirectoryAwayError : public UnavailableError {
 public:
  using UnavailableError::UnavailableError;
};

struct DirectoryLockOptions {
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
  // An owner about which nothing else is known, because it is on another machine, counts as dead when its heartbeat is
  // older than both this limit and its own. Owners beat several times within their own limit.
  Seconds limit{60};
  bool use_flock = true;  // false: only the record, for file systems whose flock() hangs or lies
};

// Reserves a directory for one owner: only one process writes to it at a time, across machines. Advisory: it binds
// processes that take the lock, and code that calls check_directory_owner().
//
//   taken --beat--> taken --destroyed--> free        taken --another has it--> lost: check() and beat() throw
//   taken --it is gone, or another has its name--> away --it is back--> taken, or lost
//
// The directory counts as the one that was taken if the record in it is this owner's, and its inode and birth time are
// the same; its device may have changed, as after a remount. If the record is this owner's but one of those two
// differs, it is a copy, and so another directory. Without this owner's record, a directory with another device, inode
// or birth time is another one. The same directory with another owner's record is lost. The same directory without a
// record is not written to from the first check on, and counts as lost when a beat finds it so for longer than the
// limit: until then, it may be in the middle of being removed.
//
// Two files mark it as taken. The file `chief.lock` is locked by flock(2), which ends with the process. The file
// `chief.owner` names the owner and its last heartbeat (docs/formats/owner_record.md), for messages and for file
// systems on which flock() has no effect, or none beyond the machine. An existing owner counts as dead
//   1. if it is a process that this one can see, identified by boot and start time: as soon as it is gone;
//   2. if it is in another container of this machine, and held the flock: as soon as that is free;
//   3. otherwise: when its record is older than the longer of the two limits, its own and the one given here, by the
//      file system's clock. A flock that a file server still holds for a dead machine is ignored.
// Taking over means replacing the record. If two processes do so at once, one is refused where flock() works; where it
// does not, the later record stays, and the other process finds out at its next check. An owner that was wrongly taken
// for dead (its machine was suspended) finds out in the same way, before it renames anything. The window between a
// check and its rename remains.
//
// Any thread may call check(), one at a time beat().
class DirectoryLock {
 public:
  // The directory must exist. Remains of records that killed processes left there are removed: at once if the process
  // is known to have ended, else by the first beat after they are older than the limit. DirectoryLockedError: it has an
  // owner. InvalidArgumentError: the limit is not positive, or not a number. Otherwise throws what the file system
  // throws.
  explicit DirectoryLock(const std::string& directory, const DirectoryLockOptions& options = {});

  // Releases it: both files are removed, unless another process owns the directory by now.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // DirectoryLostError: another process owns it. DirectoryAwayError: the directory or its record is missing.
  // DamagedOwnerError.
  void check() const;

  // check(), then a new heartbeat in the record. A damaged record belongs to no owner, and is rewritten. Throws as
  // check() does, and what the file system throws. DirectoryLostError also if the record has been gone for longer than
  // the limit.
  void beat();

  const OwnerRecord& owner() const { return owner_; }

 private:
  void take_flock();
  void write_record(double heartbeat) const;
  void sweep();
  Seconds limit_of(const OwnerRecord& owner) const;
  bool is_flock_of_a_dead_machine() const;
  void refuse_unless_dead() const;

  const std::string directory_;
  const DirectoryLockOptions options_;
  std::unique_ptr<FileLock> flock_;  // null: not supported here
  OwnerRecord owner_;                // this one
  std::optional<DirectoryId> place_;
  std::optional<Seconds> record_gone_since_;  // as seen by the beats; nullopt: it was there at the last one
  bool is_swept_ = false;                     // of what killed processes left
};

// Call it before creating, renaming or removing a file in the directory of `path`, and before creating that directory.
// Throws as DirectoryLock::check() does if this process has a lock on that directory, or on one above it; and
// DirectoryLostError if this process has released a lock on that directory, and another process owns it now. A process
// that never had a lock is not checked. For a process that has one, a path whose links cannot be followed gives the
// system's error, as it may be that directory.
void check_directory_owner(FileSystem& files, const std::string& path);

// DirectoryAwayError: this process has had a lock on the directory, which is gone, or another one has its name. For
// code that retakes the lock during one training run, and must not begin another run in its place.
void check_directory_is_there(FileSystem& files, const std::string& directory);

}  // namespace longhaul
