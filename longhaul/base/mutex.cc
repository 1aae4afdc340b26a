#include "longhaul/base/mutex.h"

#include <algorithm>

namespace longhaul {

void CondVar::wait_for(Mutex& mutex, Seconds timeout) NO_THREAD_SAFETY_ANALYSIS {
  constexpr Seconds kLongest{3600};
  const auto bounded = std::chrono::duration_cast<std::chrono::nanoseconds>(std::clamp(timeout, Seconds{0}, kLongest));
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  cond_.wait_for(lock, bounded);
  lock.release();
}

}  // namespace longhaul
