#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/status/listener.h"

namespace longhaul {

// A port that is listened on as soon as it is free. One thread, except port().
class Door {
 public:
  Door(ListenAddress address, std::string what) : address_(std::move(address)), what_(std::move(what)) {}

  void open();  // throws what Listener does
  void open_if_due(Seconds now);
  void close() { listener_.reset(); }
  void pause_until(Seconds time) { next_ = time; }

  bool is_accepting(Seconds now) const { return listener_ && now >= next_; }
  Seconds next() const { return next_; }  // when it accepts, or is tried, again
  Listener& listener() { return *listener_; }
  int port() const { return port_; }

 private:
  const ListenAddress address_;
  const std::string what_;
  std::optional<Listener> listener_;
  Seconds next_{0}, retry_{1};
  std::atomic<int> port_{0};
};

}  // namespace longhaul
