#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "longhaul/session/session.h"
#include "longhaul/train/coordination/coordinator.h"

namespace longhaul {

// Lets a stop end the waits of a session on servers that is being made ready, above all the wait for a task that is not
// there: a thread waits for the stop, and closes the session when it comes. One thread at a time.
//
//   StopEndsWaits stop(session, coordinator);
//   ... runs ...
//   stop.finish();
class StopEndsWaits {
 public:
  StopEndsWaits(std::shared_ptr<Session> session, const Coordinator& coordinator);
  ~StopEndsWaits();
  StopEndsWaits(const StopEndsWaits&) = delete;
  StopEndsWaits& operator=(const StopEndsWaits&) = delete;

  // The session is ready. CancelledError: a stop came before, and closed it.
  void finish();

 private:
  bool end();  // true: no stop has come before

  const Coordinator stop_;  // stops with the other one
  const std::shared_ptr<std::atomic<bool>> is_over_ = std::make_shared<std::atomic<bool>>(false);
  bool has_ended_ = false;
};

}  // namespace longhaul
