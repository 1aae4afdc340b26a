#pragma once

#include <optional>
#include <string>

#include "longhaul/cluster/spec/cluster_spec.h"
#include "longhaul/cluster/spec/task_name.h"

namespace longhaul {

namespace proto {
class ConfigProto;
class ServerDef;
}  // namespace proto

// What a program says about its server in addition to the cluster, or in place of what a ServerDef says.
struct ServerDefOptions {
  std::optional<std::string> job_name{};  // may be left out if the cluster has one job
  std::optional<int> task_index{};        // may be left out if the job has one task
  std::optional<std::string> protocol{};  // default: "grpc", the only one
  // Merged into the ServerDef's own: the defaults of the sessions on this server.
  const proto::ConfigProto* config = nullptr;
};

// The definition of a task's server: complete, and checked with check_server_def(). InvalidArgumentError "Must specify
// an explicit `job_name`." or "... `task_index`.": it was left out, and there are several.
proto::ServerDef make_server_def(const ClusterSpec& cluster, const ServerDefOptions& options = {});
proto::ServerDef make_server_def(const proto::ServerDef& server, const ServerDefOptions& options = {});

// That of a server on its own, of the cluster {"local": ["localhost:0"]}.
proto::ServerDef local_server_def(const proto::ConfigProto* config = nullptr);

// InvalidArgumentError: the cluster is malformed, or lacks the job or the task. NotFoundError: there is no such
// protocol.
void check_server_def(const proto::ServerDef& server);

// The server's task, and its entry in the cluster.
TaskId own_task(const proto::ServerDef& server);
std::string own_address(const proto::ServerDef& server);

}  // namespace longhaul
