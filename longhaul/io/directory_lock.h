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

// The directory has an owner already. The message says who, since when, and what to do. Trying again helps only when
// that one has ended.
class DirectoryLockedError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// The directory was this process's, and has another owner now. Trying again does not help.
class DirectoryLostError : public FailedPreconditionError {
 public:
  using FailedPreconditionError::FailedPreconditionError;
};

// A directory that this process has locked is not there: it was unmounted, moved or removed, cannot be read, or another
// one has its name now. The message says which was expected and what is there. Nothing is written meanwhile, nor made
// anew. It is not lost: when it is back, what was refused works again.
class DirectoryAwayError : public UnavailableError {
 public:
  using UnavailableError::UnavailableError;
};

struct DirectoryLockOptions {
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
  // An owner of whom nothing else is known, because it is on another machine, is dead when its heartbeat is older than
  // this, and than its own limit. Owners beat several times within their own.
  Seconds limit{60};
  bool use_flock = true;  // false: the record alone, for file systems whose flock() hangs or lies
};

// Keeps a directory for one owner: one process writes to it at a time, whatever machine it is on. Advisory: it binds
// those that take it, and what calls check_directory_owner().
//
//   taken --beat--> taken --destroyed--> free        taken --another has it--> lost: check() and beat() throw
//   taken --it is gone, or another has its name--> away --it is back--> taken, or lost
//
// The directory is the one that was taken if the record in it is this owner's, and its inode and its time of birth are
// the same, whatever device it is on by now, as after a remount. With that record and others it is a copy, which is
// another one. Without that record it is another one if its device, its inode or its time of birth is another. One
// that is the same, and has another's record, is lost. One that is the same and has none is not written to from
// the first look on, and lost when a beat finds it so for longer than the limit: until then it may be that all of it is
// just being removed.
//
// Two things say that it is taken. The file `chief.lock` is locked by flock(2), which ends with the process. The file
// `chief.owner` says who the owner is and when its heart beat last (docs/formats/owner_record.md), for messages and
// for file systems on which flock() does nothing, or nothing beyond the machine. An owner that is found is dead
//   1. if it is a process that this one can see, by its boot and its start time: when that is gone, at once;
//   2. if it is of another container of this machine, and had the flock: when that is free, at once;
//   3. otherwise: when its record is older than the longer of the two limits, its own and that of who asks, by the
//      clock of the file system. A server of files that still has the flock of a machine that died is not asked.
// To take over is to replace the record. Where flock() works, of two that do so at once one is refused. Where it does
// not, the later record stays, and whoever wrote the other one finds out at its next check. An owner that was taken for
// dead and was not (a machine that was suspended) finds out in the same way, before it renames anything: what remains
// is the moment between a check and its rename.
//
// check() is for any thread, beat() for one at a time.
class DirectoryLock {
 public:
  // The directory exists. What killed processes have left of their records there is removed, once it is older than the
  // limit. DirectoryLockedError: it has an owner. InvalidArgumentError: the limit is not positive, or no number.
  // Otherwise what the file system throws.
  explicit DirectoryLock(const std::string& directory, const DirectoryLockOptions& options = {});

  // Gives it back: both files are removed, unless it is another's by now.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  // DirectoryLostError: it is another's. DirectoryAwayError: it is not there, or its record is not. DamagedOwnerError.
  void check() const;

  // check(), then a new heartbeat in the record. A record that is damaged is nobody's, and is written anew. Throws as
  // check() does, and what the file system throws. DirectoryLostError: also where the record has been gone for longer
  // than the limit.
  void beat();

  const OwnerRecord& owner() const { return owner_; }

 private:
  void take_flock();
  void write_record(double heartbeat) const;
  Seconds limit_of(const OwnerRecord& owner) const;
  bool is_flock_of_a_dead_machine() const;
  void refuse_unless_dead() const;

  const std::string directory_;
  const DirectoryLockOptions options_;
  std::unique_ptr<FileLock> flock_;  // null: not supported here
  OwnerRecord owner_;                // this one
  std::optional<DirectoryId> place_;
  std::optional<Seconds> record_gone_since_;  // as the beats saw it; nullopt: at the last one it was there
};

// To be called before a file of the directory of `path` is made, renamed or removed, and before that directory is made.
// Throws as DirectoryLock::check() does if this process has a lock on that directory, or on one above it; and
// DirectoryLostError if it has given one on that directory back, and another process owns it now. Nothing is asked of
// a process that never had one. Who has one, and names a directory whose links cannot be followed, gets the system's
// error: it may be that one.
void check_directory_owner(FileSystem& files, const std::string& path);

// Where this process has had a lock on the directory: DirectoryAwayError, if that is gone or another has its name. For
// who takes it again in the course of one training, and must not begin another one in its place.
void check_directory_is_there(FileSystem& files, const std::string& directory);

}  // namespace longhaul
