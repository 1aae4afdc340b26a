#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"
#include "longhaul/io/lock/directory_id.h"
#include "longhaul/io/lock/file_lock.h"
#include "longhaul/io/lock/owner_record.h"

namespace longhaul {

// The directory already has an owner. The message names the owner, says since when it has owned the directory, and what
// to do. Retrying helps only once that owner has ended.
class DirectoryLockedError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// This process owned the directory, and now another process owns it. Retrying does not help.
class DirectoryLostError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// A directory that this process has locked is missing: it was unmounted, moved or removed, cannot be read, or its name
// now belongs to another directory. The message says what was expected and what was found. Nothing is written or
// recreated while the directory is missing. It is not lost: once it is back, the operations work again.
class DirectoryAwayError : public UnavailableError {
 public:
  using UnavailableError::UnavailableError;
};

struct DirectoryLockOptions {
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
  // An owner on another machine can be judged only by its heartbeat: it counts as dead once the heartbeat is older than
  // both this limit and the owner's. An owner beats several times within its limit.
  Seconds limit{60};
  bool use_flock = true;  // false: uses only the record, for file systems whose flock() hangs or lies
};

// Reserves a directory for one owner: only one process at a time writes to it, across machines. The lock is advisory:
// it binds only processes that take it, and code that calls check_directory_owner().
//
//   taken --beat--> taken --destroyed--> free        taken --another has it--> lost: check() and beat() throw
//   taken --it is gone, or another has its name--> away --it is back--> taken, or lost
//
// The directory counts as the one that was taken if it has this owner's record and the same inode and birth time; its
// device may have changed, for example in a remount. If it has this owner's record but another inode or birth time, it
// is a copy, and so a different directory. Without this owner's record, a directory with another device, inode or birth
// time is a different one. The same directory with another owner's record is lost. The same directory without a record
// is not written to from the first check on, because somebody may be removing it; it counts as lost once beats have
// found it so for longer than the limit.
//
// Two files mark the directory as taken. The file `chief.lock` is locked by flock(2); this lock ends with the process.
// The file `chief.owner` names the owner and its last heartbeat (docs/formats/owner_record.md), for messages, and for
// file systems on which flock() has no effect, or only within one machine. An existing owner counts as dead
//   1. if this process can see it (identified by boot and start time): as soon as it has ended;
//   2. if it is in another container of this machine and held the flock: as soon as the flock is free;
//   3. otherwise: once its record is older, by the file system's clock, than the longer of the two limits (the owner's
//      and the one given here). A flock that a file server still holds for a dead machine is ignored.
// A process takes the directory over by replacing the record. If two processes do so at the same time, one is refused
// where flock() works. Where it does not, the later record stays, and the other process notices at its next check. An
// owner that was wrongly taken for dead (its machine was suspended) notices in the same way, before it renames
// anything. A short window remains, between a check and the rename after it.
//
// Any thread may call check(); only one at a time may call beat().
class DirectoryLock {
 public:
  // The directory must exist. Removes what killed processes left of their records: immediately if the process is known
  // to have ended, else with the first beat after the remains are older than the limit. DirectoryLockedError: the
  // directory has an owner. InvalidArgumentError: the limit is not a positive number. Otherwise throws what the file
  // system throws.
  explicit DirectoryLock(const std::string& directory, const DirectoryLockOptions& options = {});

  // Releases the directory: removes both files, unless another process has become the owner.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // DirectoryLostError: another process owns it. DirectoryAwayError: the directory or its record is missing.
  // DamagedOwnerError.
  void check() const;

  // Calls check() and writes a new heartbeat to the record. A damaged record belongs to no owner, and is rewritten.
  // Throws what check() and the file system throw, and DirectoryLostError also if the record has been missing for
  // longer than the limit.
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
  std::optional<Seconds> record_gone_since_;  // as seen by the beats; nullopt: the last beat found it
  bool is_swept_ = false;                     // the remains of killed processes are removed
};

// Call this before creating, renaming or removing a file in the directory of `path`, and before creating that
// directory. If this process has a lock on that directory, or on one above it, throws what DirectoryLock::check()
// throws. If this process has released a lock on that directory and another process owns it now, throws
// DirectoryLostError. A process that never had a lock is not checked. In a process that has a lock, throws the system's
// error if the links of `path` cannot be followed, because `path` may lead to the locked directory.
void check_directory_owner(FileSystem& files, const std::string& path);

// DirectoryAwayError: this process has had a lock on the directory, and the directory is missing or its name belongs to
// another one. For code that retakes the lock within one training run, and must not begin another training run in its
// place.
void check_directory_is_there(FileSystem& files, const std::string& directory);

}  // namespace longhaul
