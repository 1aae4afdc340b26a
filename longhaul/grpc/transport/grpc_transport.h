#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "longhaul/cluster/security/transport_security.h"
#include "longhaul/cluster/transport/task_frame.h"
#include "longhaul/cluster/transport/transport.h"
#include "longhaul/cluster/transport/wire_call.h"
#include "longhaul/grpc/transport/credentials.h"
#include "longhaul/grpc/transport/local_call.h"

namespace grpc {
class ChannelCredentials;
}

namespace longhaul {

class CallbackDoor;
class GrpcPort;
class RenewalWatch;
class TokenFile;

struct GrpcTransportOptions {
  std::string task{};
  uint64_t incarnation = 0;                        // 0: drawn at random
  std::string listen{};                            // "127.0.0.1:0"; empty: a client, which nobody calls
  std::map<std::string, std::string> addresses{};  // of tasks, by name
  TransportSecurity security{};
  Seconds read_files_again = kReadFilesAgain;  // of TLS
  TransportLimits limits{};
  FrameLimits frames{};
  Clock* clock = &Clock::real();  // for the texts of errors; gRPC counts limits on the machine's own
};

// A transport over gRPC: one connection to each peer, made when it is needed, and one port. Frames are as
// docs/formats/task_messages.md says. What it gives besides Transport's promises:
//   - A call that the peer's gRPC refuses ends with the status's class: UnauthenticatedError, if the token is not the
//     peer's; ResourceExhaustedError, if a frame is above FrameLimits::most_bytes or 4 GiB
//   - A task's call to itself does not pass through the network: its tensors are the caller's, not copies
//   - A call to a task without an address is an InvalidArgumentError that names it
//
// Its threads are gRPC's, shared by all transports of the process. A child made by fork() cannot use it: its calls are
// FailedPreconditionErrors there. Children should exec(), since they keep the connections of a dead parent open, so
// that its peers notice the death only after TransportLimits::longest_cut.
class GrpcTransport final : public Transport {
 public:
  // Listens at once, but refuses calls with UnavailableError until begin(). Errors of the address, the files and the
  // token: see GrpcPort, check_security() and check_listen_address(). ResourceExhaustedError: the process may not have
  // as many descriptors or threads as gRPC needs (check_room()).
  static std::shared_ptr<GrpcTransport> create(GrpcTransportOptions options);
  // Stops, and waits for handlers that are under way; if a callback or a handler has destroyed it, a short-lived thread
  // does the rest.
  ~GrpcTransport() override;

  std::string address_of(const std::string& task) const override EXCLUDES(mutex_);
  int port() const;  // that it listens on; 0: it is a client
  void set_addresses(std::map<std::string, std::string> addresses) EXCLUDES(mutex_);  // of more tasks, or new ones

  // Before begin(): calls whose path begins with `prefix`, "/tensorflow.MasterService/", go to `handler`.
  void serve_wire(const std::string& prefix, WireHandler handler) EXCLUDES(mutex_);
  void begin() EXCLUDES(mutex_);  // calls are handled from now on

 protected:
  void send(std::shared_ptr<OutgoingCall> call, proto::CallHeader header, Message message) override;
  void wake_after(Seconds time, std::function<void()> wake) override;
  void end_others(const std::string& why) override;

 private:
  explicit GrpcTransport(GrpcTransportOptions options);
  void listen();

  // Outgoing.
  std::shared_ptr<PeerLine> line_to(const std::string& task, const std::string& method) EXCLUDES(mutex_);
  LocalDispatch own_calls();

  // Arriving.
  void take(const std::shared_ptr<WireCall>& call) EXCLUDES(mutex_);
  void take_task_call(const std::shared_ptr<WireCall>& call);
  WireHandler handler_of(const std::string& path) const EXCLUDES(mutex_);  // throws what refuses the call
  void check_begun(const std::string& path) const EXCLUDES(mutex_);

  const GrpcTransportOptions options_;
  const pid_t process_;
  const std::shared_ptr<TokenFile> token_;  // null: none
  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::shared_ptr<RenewalWatch> files_;  // null: no TLS
  const std::shared_ptr<CallsInGrpc> calls_;
  const std::shared_ptr<CallbackDoor> door_;
  std::unique_ptr<GrpcPort> port_;  // null: a client
  mutable Mutex mutex_;
  bool has_begun_ GUARDED_BY(mutex_) = false;
  std::string why_stopped_ GUARDED_BY(mutex_);  // empty: it was not
  std::map<std::string, std::string> addresses_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<PeerLine>> lines_ GUARDED_BY(mutex_);  // by task
  std::map<std::string, WireHandler> wire_handlers_ GUARDED_BY(mutex_);        // by prefix
};

}  // namespace longhaul
