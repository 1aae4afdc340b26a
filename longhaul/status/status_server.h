#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "longhaul/base/thread.h"
#include "longhaul/status/http_connection.h"
#include "longhaul/status/http_reply.h"
#include "longhaul/status/listen_address.h"
#include "longhaul/status/status_access.h"

namespace longhaul {

// Serves routes over HTTP. One thread ("lh-status") has all sockets, none of which it waits for, so that a slow client
// costs a descriptor and no more; it answers probes itself. Other routes are answered on two threads ("lh-answer-0",
// ...). What comes beyond HttpLimits is refused, and the oldest connection makes room for a new one.
//
//   new --open--> new --start--> serving --stop--> over
//
// One thread at a time may call.
class StatusServer {
 public:
  // The routes own what they use: one that hangs is left behind by stop(). `what`: for messages, "the status page of
  // runs/demo".
  StatusServer(ListenAddress address, StatusAccess access, std::vector<HttpRoute> routes, std::string what,
               const HttpLimits& limits = {});
  ~StatusServer();  // stops
  StatusServer(const StatusServer&) = delete;
  StatusServer& operator=(const StatusServer&) = delete;

  // Listens, for a program that is nothing without its port; start() follows. Throws what Listener does.
  void open();
  // Listens, unless it does, and logs where. If that fails, logs a warning, and the thread tries again, less and less
  // often: no training ends for its page. std::system_error: there is no thread.
  void start();
  void stop();  // replies that are being written have half a second

  int port() const;  // 0: it does not listen yet

 private:
  class Loop;

  const std::shared_ptr<Loop> loop_;  // jobs that are left behind share it
  NamedThread thread_;
};

}  // namespace longhaul
