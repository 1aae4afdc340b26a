#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "longhaul/io/directory_lock.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// How the chief of a directory keeps others out.
struct LockOptions {
  bool lock = true;        // false: it does not
  Seconds lease_secs{60};  // a chief on another machine that is silent for longer counts as dead
  bool with_flock = true;  // false: by its record alone, where flock() hangs or lies
};

// A DirectoryLock with its heartbeat: a thread, lh-chief, that beats six times within the limit. A heartbeat that
// cannot be written is logged, once until one can, and tried again. Any thread.
class ChiefLock {
 public:
  // Takes the directory, which is made if it is not there. DirectoryLockedError: it has an owner. `on_lost` is called
  // on the thread, once, with the DirectoryLostError, when the directory is found to be another's.
  ChiefLock(const std::string& directory, const DirectoryLockOptions& options,
            std::function<void(const std::exception_ptr&)> on_lost = {});

  // Gives it back. A heartbeat that hangs in the file system is waited for as long as the limit; then it is left to
  // give the directory back itself.
  ~ChiefLock();
  ChiefLock(const ChiefLock&) = delete;
  ChiefLock& operator=(const ChiefLock&) = delete;

  void raise_if_lost() const;  // DirectoryLostError: a heartbeat has found that it is. Costs no system call.

 private:
  class Heart;

  const Coordinator coord_;  // the thread's own
  const Seconds limit_;
  std::shared_ptr<Heart> heart_;
};

}  // namespace longhaul
