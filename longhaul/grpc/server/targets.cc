#include "longhaul/grpc/server/targets.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/master/cluster_session.h"
#include "longhaul/cluster/spec/task_address.h"
#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/grpc/server/client_transports.h"
#include "longhaul/grpc/server/local_servers.h"
#include "longhaul/runtime/direct_session.h"

namespace longhaul {
namespace {

constexpr std::string_view kScheme = "grpc://";
constexpr char kLocal[] = "local";
constexpr Seconds kLongestReset{10};

WaitLimits limits_of_reset() {
  return {.deadline = Clock::real().now() + kLongestReset};
}

bool is_address_text(const std::string& target) {
  try {
    return TaskAddress::parse(target).port > 0;
  } catch (const InvalidArgumentError&) {
    return false;
  }
}

[[noreturn]] void refuse_target(const std::string& target) {
  const std::string hint =
      is_address_text(target) ? fmt::format(". Did you mean \"{}{}\"?", kScheme, excerpt(target)) : "";
  throw NotFoundError(
      fmt::format("No session factory registered for the given session options: {{target: \"{}\"}}. Targets are \"\" "
                  "for this process, \"{}\" for a server of this process and \"{}host:port\" for any other{}",
                  excerpt(target), kLocal, kScheme, hint));
}

// "host:port" as it is written, so that it finds what has it in a cluster.
std::string address_in(const std::string& target) {
  if (!target.starts_with(kScheme)) refuse_target(target);
  return TaskAddress::parse(target.substr(kScheme.size())).to_string();
}

std::shared_ptr<RunningServer> server_here(const std::string& target) {
  const auto server = target == kLocal ? shared_local_server() : local_servers().find(address_in(target));
  if (server != nullptr) server->check_process();
  return server;
}

std::string address_of_target(const std::string& target) {
  return target == kLocal ? shared_local_server()->address() : address_in(target);
}

// A server of another process, and how it and the tasks of its cluster are called. It is where the target says, even if
// its own cluster has another address for it.
struct RemoteServer {
  std::shared_ptr<GrpcTransport> transport;
  ServerTask server;
};

RemoteServer ask_remote(const std::string& address, Seconds max_wait, const WaitLimits& limits) {
  auto transport = client_transports().get(address);
  ServerTask server = ask_server(*transport, address, max_wait, limits);
  std::map<std::string, std::string> addresses;
  for (const std::string& task : task_names(server.cluster)) addresses[task] = address_of(server.cluster, task);
  addresses[server.task] = address;
  transport->set_addresses(std::move(addresses));
  return {std::move(transport), std::move(server)};
}

std::unique_ptr<Session> new_remote_session(const std::string& address, Graph& graph, const SessionOptions& options) {
  RemoteServer remote =
      ask_remote(address, options.task_wait.value_or(kSessionWaits), limits_of(options, Clock::real()));
  return session_on(remote.server, std::move(remote.transport), graph, options);
}

}  // namespace

std::unique_ptr<Session> new_session_on_target(const std::string& target, Graph& graph, const SessionOptions& options) {
  if (target.empty()) return new_direct_session(target, graph, options);
  const auto here = server_here(target);
  if (here != nullptr && !options.use_rpc_for_inprocess_master) return here->task().new_session(graph, options);
  return new_remote_session(address_of_target(target), graph, options);
}

void reset_target(const std::string& target, const std::vector<std::string>& containers) {
  if (target.empty()) return reset_direct_sessions(target, containers);
  const WaitLimits limits = limits_of_reset();
  if (const auto here = server_here(target)) return here->task().reset(containers, limits);
  const RemoteServer remote = ask_remote(address_in(target), kLongestReset, limits);
  reset_tasks(*remote.transport, task_names(remote.server.cluster), containers, limits);
}

}  // namespace longhaul
