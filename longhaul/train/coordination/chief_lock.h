#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/io/directory_lock.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// A heartbeat, of which there are six per lease, is a file that is written, synced and renamed: in less time a chief
// that lives is taken for dead.
inline constexpr Seconds kShortestLease{1};

// How the chief of a directory locks it.
struct LockOptions {
  bool lock = true;  // false: it does not
  Seconds lease_secs{
      60};  // a chief on another machine that is silent for longer counts as dead; kShortestLease or more
  bool with_flock = true;  // false: by the owner record alone, where flock() hangs or is unreliable
};

// InvalidArgumentError: the lease, of the options of that name, is shorter than kShortestLease or not a number.
void check_lock(const LockOptions& options, std::string_view name);

// A DirectoryLock with its heartbeat: a thread, lh-chief, that writes it six times per lease. A heartbeat that cannot
// be written is logged, once until one succeeds, and retried. Any thread.
class ChiefLock {
 public:
  // Locks the directory, creating it if necessary. DirectoryLockedError: it has another owner. `on_lost` is called on
  // the thread, once, with the DirectoryLostError, when the directory turns out to have another owner.
  ChiefLock(const std::string& directory, const DirectoryLockOptions& options,
            std::function<void(const std::exception_ptr&)> on_lost = {});

  // Unlocks it. Waits for a heartbeat that hangs in the file system, for one lease at most; after that, the heartbeat's
  // thread unlocks the directory itself.
  ~ChiefLock();
  ChiefLock(const ChiefLock&) = delete;
  ChiefLock& operator=(const ChiefLock&) = delete;

  void raise_if_lost() const;  // DirectoryLostError: a heartbeat found it lost. No system call.

 private:
  class Heart;

  const Coordinator coord_;  // the thread's own
  const Seconds limit_;
  std::shared_ptr<Heart> heart_;
};

}  // namespace longhaul
