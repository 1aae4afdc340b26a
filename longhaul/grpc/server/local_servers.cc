#include "longhaul/grpc/server/local_servers.h"

#include "longhaul/cluster/spec/server_def.h"

namespace longhaul {
namespace {

struct SharedServer {
  Mutex mutex;
  std::shared_ptr<RunningServer> server GUARDED_BY(mutex);
};

SharedServer& shared_server() {
  static auto* const shared = new SharedServer;
  return *shared;
}

}  // namespace

void LocalServers::add(const std::shared_ptr<RunningServer>& server) {
  MutexLock lock(mutex_);
  std::erase_if(servers_, [](const auto& known) { return known.expired(); });
  servers_.push_back(server);
}

std::shared_ptr<RunningServer> LocalServers::find(const std::string& address) {
  std::vector<std::shared_ptr<RunningServer>> living;
  {
    MutexLock lock(mutex_);
    for (const auto& known : servers_) living.push_back(known.lock());
  }
  std::shared_ptr<RunningServer> stopped;
  for (const auto& server : living) {
    if (server == nullptr || !is_same_address(server->address(), address)) continue;
    if (!server->is_stopped()) return server;
    stopped = server;
  }
  return stopped;
}

LocalServers& local_servers() {
  static auto* const servers = new LocalServers;
  return *servers;
}

// A child has none of it, but may make no other either.
std::shared_ptr<RunningServer> shared_local_server() {
  check_grpc_may_be_used("the server of the target 'local'");
  SharedServer& shared = shared_server();
  MutexLock lock(shared.mutex);
  if (shared.server == nullptr) {
    shared.server = std::make_shared<RunningServer>(local_server_def(), ServerOptions{});
    shared.server->start();
    local_servers().add(shared.server);
  }
  return shared.server;
}

}  // namespace longhaul
