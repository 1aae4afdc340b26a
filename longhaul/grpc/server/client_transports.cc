#include "longhaul/grpc/server/client_transports.h"

#include <fmt/format.h>

#include "longhaul/grpc/server/forked.h"

namespace longhaul {

std::shared_ptr<GrpcTransport> ClientTransports::get(const std::string& address) {
  check_grpc_may_be_used(fmt::format("a session on grpc://{}", address));
  MutexLock lock(mutex_);
  std::shared_ptr<GrpcTransport>& transport = by_target_[address];
  if (transport == nullptr) {
    transport = GrpcTransport::create(
        {.task = kClientTask, .addresses = {{address, address}}, .security = security_, .limits = limits_});
    transport->begin();
  }
  return transport;
}

// Sessions keep the transports that they have.
void ClientTransports::set_security(const TransportSecurity& security) {
  MutexLock lock(mutex_);
  security_ = security;
  by_target_.clear();
}

void ClientTransports::set_lost_line(Seconds lost_line) {
  MutexLock lock(mutex_);
  limits_.lost_line = lost_line;
  by_target_.clear();
}

ClientTransports& client_transports() {
  static auto* const transports = new ClientTransports;
  return *transports;
}

}  // namespace longhaul
