#pragma once

#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/deadline.h"
#include "longhaul/base/mutex.h"
#include "longhaul/train/checkpointing/save_attempts.h"

namespace longhaul {

// The newest checkpoint that a mirror lacks. It replaces older ones, so nothing queues up. One thread takes from it;
// any thread may add.
class MirrorQueue {
 public:
  // The attempts decide when a failed copy is retried. Both outlive the queue.
  MirrorQueue(const SaveAttempts& attempts, Clock& clock) : attempts_(attempts), clock_(clock) {}

  void add(const std::string& prefix);

  // Waits for a checkpoint, or until one is due for a retry. Once finish() waits, the first retry is due at once: what
  // has failed may work again. Empty: there is nothing left to do.
  std::string next();
  // The checkpoint no longer needs a copy, unless it was added again since next() returned it.
  void drop(const std::string& prefix);
  // A Pause in the middle of a copy: waits for so long, for a rate limit; may return early. Returns true: the limit
  // holds to the end. CancelledError: the queue was abandoned, even during the wait.
  bool pause(Seconds time);

  // Waits until none is left, then abandons the queue; returns what is left. Waits at most for `timeout`, and for half
  // of the time until the deadline, because the other half is for what follows. Does not wait for a retry that is due
  // only later.
  std::string finish(Seconds timeout, const Deadline* deadline = nullptr);
  void abandon();  // next() returns nothing more

 private:
  const SaveAttempts& attempts_;
  Clock& clock_;

  mutable Mutex mutex_;
  CondVar changed_;
  std::string wanted_ GUARDED_BY(mutex_);        // the newest one not copied yet
  bool is_replaced_ GUARDED_BY(mutex_) = false;  // since next(): perhaps by another one of its name
  bool is_finishing_ GUARDED_BY(mutex_) = false;
  bool is_tried_at_end_ GUARDED_BY(mutex_) = false;   // since finish() waits
  bool is_paused_at_end_ GUARDED_BY(mutex_) = false;  // that try has failed, and next() waits for another one
  bool is_abandoned_ GUARDED_BY(mutex_) = false;
};

}  // namespace longhaul
