#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/cluster.h"
#include "longhaul/server.h"

namespace longhaul::bench {

// Where the tasks of a cluster are.
struct ClusterAddresses {
  std::vector<std::string> workers, ps;
  ClusterSpec spec() const;
};

// On ports of 127.0.0.1 at which nobody listens.
ClusterAddresses free_cluster(int workers, int ps);

// The servers of a worker and its ps tasks, all in this process. No ps: the worker alone, without a server.
class TrainingServers {
 public:
  explicit TrainingServers(int ps_tasks);

  const ClusterSpec& cluster() const { return cluster_; }
  std::string master() const { return servers_.empty() ? "" : servers_.back()->target(); }

 private:
  ClusterSpec cluster_;
  std::vector<std::unique_ptr<Server>> servers_;  // the worker's last
};

// The task in this process.
std::unique_ptr<Server> serve_task(const ClusterAddresses& at, const std::string& job, int index);

// What starts the task in a process of its own (cluster_task_probe.cc), for a Child. A ps prints "serving", a worker
// "stepped" after its first step; both go on until they are killed.
std::vector<std::string> probe_command(const std::string& job, int index, const ClusterAddresses& at);

}  // namespace longhaul::bench
