#pragma once

#include <string>
#include <vector>

#include "longhaul/cluster/spec/cluster_spec.h"

namespace longhaul {

// The jobs that mean something to a training run. Any other name is a job like "worker".
namespace jobs {
inline constexpr char kChief[] = "chief";
inline constexpr char kMaster[] = "master";  // an older word for chief; a cluster has at most one of both
inline constexpr char kWorker[] = "worker";
inline constexpr char kPs[] = "ps";
inline constexpr char kEvaluator[] = "evaluator";  // outside the cluster
}  // namespace jobs

// What a launcher says about this process: the cluster, and which of its tasks the process is.
//
//   const LaunchedTask task = task_from_tf_config();
//   Supervisor sv({.is_chief = task.is_chief(), .logdir = "runs/demo"});
struct LaunchedTask {
  ClusterSpec cluster;  // empty: the process trains alone
  std::string job = jobs::kWorker;
  int index = 0;
  std::string session_master;  // empty: master() follows from the cluster

  // Whether it initialises and saves: the chief (or master), worker 0 if the cluster has neither, or the only task.
  bool is_chief() const;
  bool is_ps() const { return job == jobs::kPs; }
  bool is_evaluator() const { return job == jobs::kEvaluator; }

  // The target of the process's sessions: "" for this process, if it is alone or the evaluator, else
  // "grpc://HOST:PORT" with its own address.
  std::string master() const;

  // The tasks that its sessions use, as TensorFlow's estimators choose them: a worker the ps tasks and itself, a chief
  // the ps tasks and the chief, a ps task all. Empty: no filter.
  std::vector<std::string> device_filters() const;
};

// InvalidArgumentError: several chiefs, a chief and a master, no task that would be the chief, an evaluator in the
// cluster, or an own task that the cluster lacks. `source` begins the message.
void check_launched_task(const LaunchedTask& task, const std::string& source);

}  // namespace longhaul
