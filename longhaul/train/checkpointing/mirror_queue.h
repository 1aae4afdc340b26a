#pragma once

#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/train/checkpointing/save_attempts.h"

namespace longhaul {

// The newest checkpoint that a mirror lacks: what is overtaken is left out, nothing queues up. One thread takes from
// it, any may add.
class MirrorQueue {
 public:
  // The attempts say when what has failed is tried again. Both outlive it.
  MirrorQueue(const SaveAttempts& attempts, Clock& clock) : attempts_(attempts), clock_(clock) {}

  void add(const std::string& prefix);

  // Waits for one, or until it is to be tried again. Empty: there is nothing to do any more.
  std::string next();
  // It needs no copy any more, unless one has been added since next() gave it.
  void drop(const std::string& prefix);
  void check_wanted() const;  // CancelledError: it is abandoned

  // Waits until there is none left, and abandons it then; returns what is left.
  std::string finish(Seconds timeout);
  void abandon();  // next() gives nothing more

 private:
  const SaveAttempts& attempts_;
  Clock& clock_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::string wanted_ GUARDED_BY(mutex_);        // the newest that is not there yet
  bool is_replaced_ GUARDED_BY(mutex_) = false;  // since it was last looked at: by another one of its name, perhaps
  bool is_finishing_ GUARDED_BY(mutex_) = false;
  bool is_abandoned_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
