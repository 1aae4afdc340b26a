#include "longhaul/runtime/state/state_changes.h"

#include <optional>

namespace longhaul {

uint64_t StateChanges::generation() const {
  const MutexLock lock(mutex_);
  return generation_;
}

void StateChanges::bump() {
  const MutexLock lock(mutex_);
  ++generation_;
  changed_.notify_all();
}

// The watch is made and destroyed without the lock that its function takes.
uint64_t StateChanges::wait(uint64_t seen, Seconds timeout, Cancellation* cancellation) {
  bool cancelled = false;
  uint64_t now = 0;
  {
    std::optional<Cancellation::Watch> watch;
    if (cancellation != nullptr) {
      watch.emplace(*cancellation, [&] {
        const MutexLock lock(mutex_);
        cancelled = true;
        changed_.notify_all();
      });
    }
    now = next_generation(seen, clock_.now() + timeout, cancelled);
  }
  if (cancelled) cancellation->check();
  return now;
}

uint64_t StateChanges::next_generation(uint64_t seen, Seconds end, const bool& cancelled) {
  const MutexLock lock(mutex_);
  while (generation_ == seen && !cancelled) {
    const Seconds left = end - clock_.now();
    if (left <= Seconds{0}) break;
    clock_.wait_for(changed_, mutex_, left);  // wait: for a change, for the caller's timeout
  }
  return generation_;
}

}  // namespace longhaul
