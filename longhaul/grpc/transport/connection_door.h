#pragma once

#include <functional>
#include <string>

#include "longhaul/base/clock.h"
#include "longhaul/base/thread.h"
#include "longhaul/grpc/transport/listening_sockets.h"

namespace longhaul {

// Accepts the connections of a port and hands them on. gRPC 1.51 could do that itself, but stops for good once the
// process has no descriptor left. Here some are kept for the rest of the process: while there are no others,
// connections wait in the system's queue, and the log says so.
class ConnectionDoor {
 public:
  // The descriptor `connection` is the callee's. Called on the door's thread.
  using Take = std::function<void(int listener, int connection)>;

  // Listens: see ListeningSockets. `lost_line`: see line_settings.h.
  ConnectionDoor(const std::string& address, Seconds lost_line);
  ~ConnectionDoor();  // nothing is handed on any more
  ConnectionDoor(const ConnectionDoor&) = delete;
  ConnectionDoor& operator=(const ConnectionDoor&) = delete;

  int port() const { return sockets_.port(); }
  void open(Take take);  // once

 private:
  void serve();
  void accept_all(int listener);
  void set_up(int connection) const;
  void wait_for_room(const std::string& why);
  bool is_closed_within(int milliseconds) const;

  const std::string address_;
  const int lost_line_ms_;
  const ListeningSockets sockets_;
  int closes_ = -1;  // an eventfd: readable once the door closes
  Take take_;
  Seconds last_warning_{-1e9};
  NamedThread thread_;
};

}  // namespace longhaul
