#include "longhaul/cluster/server/server_session.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/cluster/spec/task_address.h"
#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/cluster/tasks/ask_status.h"
#include "longhaul/session/config_proto.h"

namespace longhaul {
namespace {

// What "localhost" stands for.
bool is_localhost(const std::string& host) {
  return host == "127.0.0.1" || host == "::1";
}

bool is_same_host(const std::string& one, const std::string& other) {
  return one == other || (one == "localhost" && is_localhost(other)) || (other == "localhost" && is_localhost(one));
}

ClusterSpec cluster_of(const SessionOptions& options) {
  std::map<std::string, JobTasks> jobs;
  for (const auto& [job, tasks] : options.cluster_def) jobs.emplace(job, JobTasks(tasks));
  return ClusterSpec(jobs);
}

// SS-17
std::string name_in(const ClusterSpec& cluster, const ServerTask& server) {
  std::string found;
  for (const std::string& task : task_names(cluster)) {
    if (!is_same_address(address_of(cluster, task), server.address)) continue;
    if (!found.empty()) {
      throw InvalidArgumentError(
          fmt::format("Found multiple matching tasks that correspond to the master ({} at {}): {} and {}. Give each "
                      "task of SessionOptions::cluster_def an address of its own",
                      server.task, server.address, found, task));
    }
    found = task;
  }
  if (!found.empty()) return found;
  throw InvalidArgumentError(
      fmt::format("The master (current machine) is not included in the provided cluster_def: the session's target {} "
                  "listens at {}, which is not the address of a task in {}",
                  server.task, server.address, cluster.to_string()));
}

// The session's cluster in place of the server's.
void set_own_cluster(const ServerTask& server, ClusterSessionOptions* options) {
  const ClusterSpec cluster = cluster_of(options->session);
  cluster.check_can_be_found();
  options->home = name_in(cluster, server);
  options->tasks = task_names(cluster);
  for (const std::string& task : options->tasks) options->called[task] = address_of(cluster, task);
  if (!options->session.share_session_state_in_clusterspec_propagation) options->session.isolate_session_state = true;
}

}  // namespace

ServerTask ask_server(Transport& transport, const std::string& address, Seconds max_wait, const WaitLimits& limits) {
  const TaskStatus status = ask_status(transport, {address}, max_wait, limits).at(address);
  ServerTask server{.task = status.task,
                    .address = address,
                    .cluster = ClusterSpec(status.cluster),
                    .defaults = session_options_of(status.session_config)};
  if (server.cluster.empty()) {
    throw FailedPreconditionError(fmt::format(
        "task {} at {} cannot serve sessions: it was started without a ClusterSpec", server.task, server.address));
  }
  address_of(server.cluster, server.task);  // throws unless it is there
  return server;
}

std::unique_ptr<ClusterSession> session_on(const ServerTask& server, std::shared_ptr<Transport> transport, Graph& graph,
                                           const SessionOptions& options, Seconds max_wait) {
  check_options_on_server(options);
  ClusterSessionOptions complete{.tasks = task_names(server.cluster),
                                 .home = server.task,
                                 .keeps = transport,
                                 .session = with_defaults(options, server.defaults),
                                 .max_wait = max_wait};
  if (!complete.session.cluster_def.empty()) set_own_cluster(server, &complete);
  return std::make_unique<ClusterSession>(graph, *transport, complete);
}

std::unique_ptr<ClusterSession> new_client_session(std::shared_ptr<Transport> transport, const std::string& address,
                                                   Graph& graph, const SessionOptions& options, Seconds max_wait) {
  check_options_on_server(options);
  const ServerTask server = ask_server(*transport, address, max_wait, limits_of(options, transport->clock()));
  return session_on(server, std::move(transport), graph, options, max_wait);
}

WaitLimits limits_of(const SessionOptions& options, const Clock& clock) {
  const Seconds timeout = options.operation_timeout;
  return {.deadline = timeout.count() > 0 ? clock.now() + timeout : Seconds{0}};
}

bool is_same_address(const std::string& one, const std::string& other) {
  const TaskAddress a = TaskAddress::parse(one), b = TaskAddress::parse(other);
  return a.port == b.port && is_same_host(a.host, b.host);
}

std::vector<std::string> task_names(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (const auto& [job, tasks] : cluster.tasks()) {
    for (const auto& [index, address] : tasks) names.push_back(task_name({job, index}));
  }
  return names;
}

}  // namespace longhaul
