#include "longhaul/status/door.h"

#include <algorithm>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestRetry{60};

}  // namespace

void Door::open() {
  if (listener_) return;
  listener_.emplace(address_);
  port_ = listener_->port();
  log_info("{}: {}", what_, page_url(address_, port_));
}

void Door::open_if_due(Seconds now) {
  if (listener_ || now < next_) return;
  try {
    open();
  } catch (const std::exception& error) {
    next_ = now + retry_;
    log_warning("{}: there is none yet: {}. Training continues, and this is tried again in {:.0f} s", what_,
                error.what(), retry_.count());
    retry_ = std::min(2 * retry_, kLongestRetry);
  }
}

}  // namespace longhaul
