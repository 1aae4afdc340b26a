#include "longhaul/cluster/transport/pause.h"

#include <optional>

namespace longhaul {

// The mutex is not held while the cancellation is asked: that calls us with its own held.
void pause(Clock& clock, Seconds until, Cancellation* cancellation) {
  Mutex mutex;
  CondVar changed;
  bool is_cancelled = false;  // guarded by mutex
  std::optional<Cancellation::Watch> wake;
  if (cancellation != nullptr)
    wake.emplace(*cancellation, [&] {
      MutexLock lock(mutex);
      is_cancelled = true;
      changed.notify_all();
    });
  MutexLock lock(mutex);
  // wait: for that time, or a cancel
  while (!is_cancelled && clock.now() < until) clock.wait_until(changed, mutex, until);
}

}  // namespace longhaul
