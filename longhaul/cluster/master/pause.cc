#include "longhaul/cluster/master/pause.h"

#include <optional>

namespace longhaul {

void pause(Clock& clock, Seconds until, Cancellation* cancellation) {
  Mutex mutex;
  CondVar changed;
  std::optional<Cancellation::Watch> wake;
  if (cancellation != nullptr)
    wake.emplace(*cancellation, [&] {
      MutexLock lock(mutex);
      changed.notify_all();
    });
  const auto is_over = [&] { return clock.now() >= until || (cancellation != nullptr && cancellation->cancelled()); };
  MutexLock lock(mutex);
  // wait: for that time, or a cancel
  while (!is_over()) clock.wait_until(changed, mutex, until);
}

}  // namespace longhaul
