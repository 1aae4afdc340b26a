#pragma once

#include <cstdint>

#include "longhaul/base/clock.h"

namespace longhaul {

// Lets bytes pass at a steady rate. Unused capacity is not saved up, so there are no bursts. One thread at a time may
// call.
class RateLimit {
 public:
  // `bytes_per_second` 0: no limit. InvalidArgumentError: it is negative, or not a number.
  RateLimit(double bytes_per_second, Clock& clock);

  // Waits until the time for all earlier bytes has passed.
  void take(uint64_t bytes);

 private:
  const double bytes_per_second_;
  Clock& clock_;
  Seconds free_at_{0};
};

}  // namespace longhaul
