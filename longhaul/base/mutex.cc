#include "longhaul/base/mutex.h"

#include <algorithm>

namespace longhaul {

void CondVar::wait(Mutex& mutex) NO_THREAD_SAFETY_ANALYSIS {
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  cond_.wait(lock);  // wait: CondVar::wait() itself
  lock.release();
}

void CondVar::wait_for(Mutex& mutex, Seconds timeout) NO_THREAD_SAFETY_ANALYSIS {
  constexpr Seconds kLongest{3600};
  const Seconds positive = timeout > Seconds{0} ? std::min(timeout, kLongest) : Seconds{0};  // NaN is not
  const auto bounded = std::chrono::duration_cast<std::chrono::nanoseconds>(positive);
  std::unique_lock<std::mutex> lock(mutex.mutex_, std::adopt_lock);
  cond_.wait_for(lock, bounded);  // wait: CondVar::wait_for() itself
  lock.release();
}

}  // namespace longhaul
