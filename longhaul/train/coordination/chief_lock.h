#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

class Deadline;

// There are six heartbeats per lease, and each writes, syncs and renames a file. With a shorter lease, a living chief
// might be taken for dead.
inline constexpr Seconds kShortestLease{1};

// How the chief of a directory locks it.
struct LockOptions {
  bool lock = true;  // false: the directory is not locked
  // A chief on another machine that is silent for longer counts as dead; kShortestLease or more.
  Seconds lease_secs{60};
  bool with_flock = true;  // false: uses only the owner record, for file systems where flock() hangs or is unreliable
};

// InvalidArgumentError: the lease is shorter than kShortestLease or not a number. `name` is that of the options, for
// the message.
void check_lock(const LockOptions& options, std::string_view name);

// A DirectoryLock with a heartbeat, which a thread, lh-chief, writes six times per lease. If a heartbeat cannot be
// written, it is retried, and the failure is logged once until one succeeds. Any thread may call.
class ChiefLock {
 public:
  // Locks the directory, which is created if needed. DirectoryLockedError: it has another owner. If a heartbeat finds
  // another owner later, the thread calls `on_lost` once, with the DirectoryLostError. `deadline` is for the
  // destructor, and outlives the lock; nullptr: none.
  ChiefLock(const std::string& directory, const DirectoryLockOptions& options,
            std::function<void(const std::exception_ptr&)> on_lost = {}, const Deadline* deadline = nullptr);

  // Unlocks the directory. If a heartbeat hangs in the file system, waits for it for at most one lease, and half of the
  // time until the deadline if that is set, even if it is set during the wait, though for a second at least; after
  // that, the heartbeat's thread unlocks the directory itself.
  ~ChiefLock();
  ChiefLock(const ChiefLock&) = delete;
  ChiefLock& operator=(const ChiefLock&) = delete;

  void raise_if_lost() const;  // DirectoryLostError: a heartbeat found another owner. Makes no system call.

 private:
  class Heart;

  const Coordinator coord_;  // the thread's own
  const Seconds limit_;
  const Deadline* const deadline_;
  std::shared_ptr<Heart> heart_;
};

}  // namespace longhaul
