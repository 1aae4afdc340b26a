#pragma once

#include <cstdint>
#include <functional>

#include "longhaul/base/clock.h"

namespace longhaul {

// Waits for so long; may return early. Returns whether the limit still holds: false lifts it for the rest of the work.
// An exception ends the work.
using Pause = std::function<bool(Seconds time)>;

// Lets bytes pass at a steady rate. Unused capacity is not saved up, so there are no bursts. One thread at a time may
// call.
class RateLimit {
 public:
  // `bytes_per_second` 0: no limit. `pause` is how it waits: at a low limit that is minutes, which only a pause of the
  // caller's can end earlier. Empty: by the clock. InvalidArgumentError: the limit is negative, or not a number.
  RateLimit(double bytes_per_second, Clock& clock, Pause pause = {});

  // Waits until the time for all earlier bytes has passed, or the pause lifts the limit. Throws what the pause throws;
  // the bytes have not passed then.
  void take(uint64_t bytes);

 private:
  const double bytes_per_second_;
  Clock& clock_;
  const Pause pause_;
  Seconds free_at_{0};
  bool is_lifted_ = false;
};

}  // namespace longhaul
