#pragma once

#include <cstdint>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"

namespace longhaul {

// Counts the changes after which a model may be ready, or no longer be: an assignment to an uninitialised variable, a
// restore, a reset. Whoever waits for a model looks, and waits for the next change if it is not ready:
//
//   uint64_t seen = changes.generation();
//   while (!is_ready()) seen = changes.wait(seen, recovery_wait, &cancellation);
//
// A change is counted after it was made, so none is missed. Any thread.
class StateChanges {
 public:
  explicit StateChanges(Clock& clock = Clock::real()) : clock_(clock) {}

  uint64_t generation() const EXCLUDES(mutex_);
  void bump() EXCLUDES(mutex_);

  // Waits until the generation is not `seen`, and returns it; returns `seen` when `timeout` is over. Throws what the
  // cancellation says, which may be null.
  uint64_t wait(uint64_t seen, Seconds timeout, Cancellation* cancellation) EXCLUDES(mutex_);

 private:
  uint64_t next_generation(uint64_t seen, Seconds end, const bool& cancelled) EXCLUDES(mutex_);

  Clock& clock_;
  mutable Mutex mutex_;
  CondVar changed_;
  uint64_t generation_ GUARDED_BY(mutex_) = 1;
};

}  // namespace longhaul
