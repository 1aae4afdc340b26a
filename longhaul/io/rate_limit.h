#pragma once

#include <cstdint>

#include "longhaul/base/clock.h"

namespace longhaul {

// Lets bytes pass at a steady rate. What was not used while nobody asked is not saved up, so there are no bursts. One
// thread.
class RateLimit {
 public:
  // `bytes_per_second` 0: no limit. InvalidArgumentError: negative, or no number.
  RateLimit(double bytes_per_second, Clock& clock);

  // Waits until the bytes before these have had their time.
  void take(uint64_t bytes);

 private:
  const double bytes_per_second_;
  Clock& clock_;
  Seconds free_at_{0};
};

}  // namespace longhaul
