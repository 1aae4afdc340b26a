#include "longhaul/io/rate_limit.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"

namespace longhaul {

RateLimit::RateLimit(double bytes_per_second, Clock& clock) : bytes_per_second_(bytes_per_second), clock_(clock) {
  if (bytes_per_second >= 0) return;
  throw InvalidArgumentError(
      fmt::format("the limit is {} bytes per second, but must be positive, or 0 for no limit", bytes_per_second));
}

void RateLimit::take(uint64_t bytes) {
  if (bytes_per_second_ == 0) return;
  Mutex mutex;
  CondVar nobody_notifies;
  MutexLock lock(mutex);
  Seconds now = clock_.now();
  // wait: it is the limit
  for (; now < free_at_; now = clock_.now()) clock_.wait_for(nobody_notifies, mutex, free_at_ - now);
  free_at_ = now + Seconds(static_cast<double>(bytes) / bytes_per_second_);
}

}  // namespace longhaul
