#include "longhaul/io/files/rate_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

bool wait_by(Clock& clock, Seconds time) {
  Mutex mutex;
  CondVar nobody_notifies;
  MutexLock lock(mutex);
  clock.wait_for(nobody_notifies, mutex, time);  // wait: it is the limit
  return true;
}

}  // namespace

RateLimit::RateLimit(double bytes_per_second, Clock& clock, Pause pause)
    : bytes_per_second_(bytes_per_second),
      clock_(clock),
      pause_(pause ? std::move(pause) : [&clock](Seconds time) { return wait_by(clock, time); }) {
  if (bytes_per_second >= 0) return;
  throw InvalidArgumentError(
      fmt::format("the limit is {} bytes per second, but must be positive, or 0 for no limit", bytes_per_second));
}

void RateLimit::take(uint64_t bytes) {
  if (bytes_per_second_ == 0 || is_lifted_) return;
  Seconds now = clock_.now();
  for (; now < free_at_; now = clock_.now()) {
    is_lifted_ = !pause_(free_at_ - now);
    if (is_lifted_) return;
  }
  free_at_ = now + Seconds(static_cast<double>(bytes) / bytes_per_second_);
}

}  // namespace longhaul
