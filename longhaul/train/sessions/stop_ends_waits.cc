#include "longhaul/train/sessions/stop_ends_waits.h"

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"

namespace longhaul {

StopEndsWaits::StopEndsWaits(std::shared_ptr<Session> session, const Coordinator& coordinator)
    : stop_(coordinator.child({.clock = &coordinator.clock()})) {
  stop_.start_thread("lh-prepare", [session = std::move(session), stop = stop_, is_over = is_over_] {
    stop.wait_for_stop();
    if (!is_over->exchange(true)) session->close();
  });
}

StopEndsWaits::~StopEndsWaits() {
  if (!has_ended_) end();
}

void StopEndsWaits::finish() {
  if (!end()) throw CancelledError("stopped while the session was made ready");
}

// Whoever sets it first decides.
bool StopEndsWaits::end() {
  has_ended_ = true;
  const bool is_first = !is_over_->exchange(true);
  stop_.request_stop();
  try {
    stop_.join({.ignore_live_threads = true});
  } catch (const std::exception& error) {
    log_warning("a session that a stop has ended could not be closed: {}", error.what());
  }
  return is_first;
}

}  // namespace longhaul
