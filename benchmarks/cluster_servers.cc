#include "benchmarks/cluster_servers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "benchmarks/loopback.h"

namespace longhaul::bench {

ClusterSpec ClusterAddresses::spec() const {
  return ClusterSpec({{"worker", JobTasks(workers)}, {"ps", JobTasks(ps)}});
}

ClusterAddresses free_cluster(int workers, int ps) {
  const std::vector<std::string> at = free_addresses_for(workers + ps);
  return {.workers = {at.begin(), at.begin() + workers}, .ps = {at.begin() + workers, at.end()}};
}

TrainingServers::TrainingServers(int ps_tasks) {
  if (ps_tasks == 0) return;
  const ClusterAddresses at = free_cluster(1, ps_tasks);
  cluster_ = at.spec();
  for (int i = 0; i < ps_tasks; ++i) servers_.push_back(serve_task(at, "ps", i));
  servers_.push_back(serve_task(at, "worker", 0));
}

std::unique_ptr<Server> serve_task(const ClusterAddresses& at, const std::string& job, int index) {
  return std::make_unique<Server>(at.spec(), ServerOptions{.job_name = job, .task_index = index});
}

std::vector<std::string> probe_command(const std::string& job, int index, const ClusterAddresses& at) {
  return {CLUSTER_TASK_PROBE_PROGRAM, job, std::to_string(index), fmt::format("{}", fmt::join(at.workers, ",")),
          fmt::format("{}", fmt::join(at.ps, ","))};
}

}  // namespace longhaul::bench
