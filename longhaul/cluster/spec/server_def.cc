#include "longhaul/cluster/spec/server_def.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"
#include "longhaul/proto/cluster.pb.h"
#include "longhaul/proto/tensorflow_server.pb.h"

namespace longhaul {
namespace {

constexpr char kGrpc[] = "grpc";

std::string only_job(const ClusterSpec& cluster) {
  const std::vector<std::string> jobs = cluster.jobs();
  if (jobs.size() == 1) return jobs[0];
  throw InvalidArgumentError(
      fmt::format("Must specify an explicit `job_name`. The cluster has the jobs [{}]", first_names(jobs)));
}

int only_task(const ClusterSpec& cluster, const std::string& job) {
  const std::vector<int> indices = cluster.task_indices(job);
  if (indices.size() == 1) return indices[0];
  throw InvalidArgumentError(
      fmt::format("Must specify an explicit `task_index`. The job '{}' has {} tasks", job, indices.size()));
}

void add_options(const ServerDefOptions& options, proto::ServerDef* server) {
  if (options.job_name) server->set_job_name(*options.job_name);
  if (options.task_index) server->set_task_index(*options.task_index);
  if (options.protocol) server->set_protocol(*options.protocol);
  if (options.config != nullptr) server->mutable_default_session_config()->MergeFrom(*options.config);
}

}  // namespace

proto::ServerDef make_server_def(const ClusterSpec& cluster, const ServerDefOptions& options) {
  ServerDefOptions complete = options;
  if (!complete.job_name) complete.job_name = only_job(cluster);
  if (!complete.task_index && cluster.has_job(*complete.job_name)) {
    complete.task_index = only_task(cluster, *complete.job_name);
  }
  proto::ServerDef server;
  *server.mutable_cluster() = cluster.as_cluster_def();
  return make_server_def(server, complete);
}

proto::ServerDef make_server_def(const proto::ServerDef& server, const ServerDefOptions& options) {
  proto::ServerDef complete = server;
  add_options(options, &complete);
  if (complete.job_name().empty()) complete.set_job_name(only_job(ClusterSpec(complete.cluster())));
  if (complete.protocol().empty()) complete.set_protocol(kGrpc);
  check_server_def(complete);
  return complete;
}

proto::ServerDef local_server_def(const proto::ConfigProto* config) {
  return make_server_def(ClusterSpec({{"local", {"localhost:0"}}}), {.config = config});
}

void check_server_def(const proto::ServerDef& server) {
  const ClusterSpec cluster(server.cluster());
  if (!cluster.has_job(server.job_name())) {
    throw InvalidArgumentError(fmt::format("Job \"{}\" was not defined in cluster; its jobs are [{}]",
                                           excerpt(server.job_name()), first_names(cluster.jobs())));
  }
  if (!cluster.tasks().at(server.job_name()).contains(server.task_index())) {
    throw InvalidArgumentError(fmt::format("Task {} was not defined in job \"{}\", which has {} tasks",
                                           server.task_index(), server.job_name(),
                                           cluster.num_tasks(server.job_name())));
  }
  cluster.check_can_be_found();
  if (server.protocol() == kGrpc) return;
  throw NotFoundError(
      fmt::format("No server factory registered for the given ServerDef: its protocol is \"{}\". The "
                  "available server factories are: [ {} ]",
                  excerpt(server.protocol()), kGrpc));
}

TaskId own_task(const proto::ServerDef& server) {
  return {server.job_name(), server.task_index()};
}

std::string own_address(const proto::ServerDef& server) {
  return ClusterSpec(server.cluster()).task_address(server.job_name(), server.task_index());
}

}  // namespace longhaul
