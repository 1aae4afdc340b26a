#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/mutex.h"

namespace longhaul {

// A server that the session uses goes soon, with what it has of the model.
struct StopNotice {
  std::string task;  // "/job:ps/replica:0/task:1"
  Seconds grace{0};  // until it goes, counted from the notice
};

// Implemented by sessions on servers (SessionCapabilities::stop_noticing). Any thread.
class StopNoticing {
 public:
  virtual ~StopNoticing() = default;

  // Calls `noticed` once for each server that announces its stop, until the result is destroyed; also for one that did
  // so before. On any thread, perhaps inside this call: it must not wait, nor use the session, and must own what it
  // touches.
  [[nodiscard]] virtual std::shared_ptr<const void> notice_stops(std::function<void(const StopNotice&)> noticed) = 0;
};

}  // namespace longhaul
