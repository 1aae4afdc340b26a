#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/cluster/transport/task_frame.h"
#include "longhaul/cluster/transport/transport.h"
#include "longhaul/cluster/transport/wire_call.h"
#include "longhaul/grpc/transport/credentials.h"

namespace longhaul {

// A port that a process listens on with gRPC: hands on each call that arrives there, whatever its path.
class GrpcPort {
 public:
  struct Options {
    std::string address{};  // "127.0.0.1:0", "[::1]:2222"; port 0: the system chooses
    TransportSecurity security{};
    Seconds read_files_again = kReadFilesAgain;  // of TLS
    TransportLimits limits{};
    FrameLimits frames{};
    // Whether a call's token is right; empty: none is asked for. What it throws refuses the call.
    std::function<bool(std::string_view token)> accepts{};
    WireHandler handler{};
  };

  // Listens. AlreadyExistsError: the address is in use; InvalidArgumentError, PermissionDeniedError, UnavailableError:
  // see listening_sockets.h.
  explicit GrpcPort(Options options);
  // Ends all calls, and waits for handlers that are under way: not inside a callback of gRPC.
  ~GrpcPort();
  GrpcPort(const GrpcPort&) = delete;
  GrpcPort& operator=(const GrpcPort&) = delete;

  int port() const;

  // Ends the calls that wait.
  void end_all(const Error& error);

 private:
  struct State;
  class Listener;
  const std::shared_ptr<State> state_;
  const std::unique_ptr<Listener> listener_;
};

}  // namespace longhaul
