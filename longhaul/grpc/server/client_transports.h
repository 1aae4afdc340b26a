#pragma once

#include <map>
#include <memory>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/grpc/transport/grpc_transport.h"

namespace longhaul {

// The name of a transport that calls, and that nobody calls.
inline constexpr char kClientTask[] = "/job:longhaul_client/replica:0/task:0";

// How this process calls servers of other processes: one transport for each target, so that the tasks of two clusters
// may have the same names. They stay until the process ends. Any thread.
class ClientTransports {
 public:
  // FailedPreconditionError: in a forked child.
  std::shared_ptr<GrpcTransport> get(const std::string& address) EXCLUDES(mutex_);
  void set_security(const TransportSecurity& security) EXCLUDES(mutex_);
  void set_lost_line(Seconds lost_line) EXCLUDES(mutex_);

 private:
  Mutex mutex_;
  TransportSecurity security_ GUARDED_BY(mutex_);
  TransportLimits limits_ GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<GrpcTransport>> by_target_ GUARDED_BY(mutex_);
};

ClientTransports& client_transports();

}  // namespace longhaul
