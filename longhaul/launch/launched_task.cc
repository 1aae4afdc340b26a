#include "longhaul/launch/launched_task.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"

namespace longhaul {
namespace {

[[noreturn]] void refuse_launch(const std::string& source, const std::string& why) {
  throw InvalidArgumentError(fmt::format("{}: {}", source, why));
}

int tasks_of_cluster(const ClusterSpec& cluster) {
  int count = 0;
  for (const std::string& job : cluster.jobs()) count += cluster.num_tasks(job);
  return count;
}

void check_chiefs(const ClusterSpec& cluster, const std::string& source) {
  if (cluster.has_job(jobs::kChief) && cluster.has_job(jobs::kMaster)) {
    refuse_launch(source, "the cluster has a job 'chief' and a job 'master', which mean the same: leave one out");
  }
  for (const char* job : {jobs::kChief, jobs::kMaster}) {
    if (!cluster.has_job(job) || cluster.task_indices(job) == std::vector<int>{0}) continue;
    refuse_launch(source, fmt::format("the job '{}' must have one task, with the index 0, but it has {}", job,
                                      cluster.num_tasks(job)));
  }
  if (cluster.has_job(jobs::kEvaluator)) {
    refuse_launch(source, "the job 'evaluator' is not part of the cluster: name it as the task only");
  }
}

// Every other process would wait for a model that nobody initialises.
void check_somebody_is_chief(const ClusterSpec& cluster, const std::string& source) {
  const bool has_chief = cluster.has_job(jobs::kChief) || cluster.has_job(jobs::kMaster);
  const auto workers = cluster.tasks().find(jobs::kWorker);
  const bool has_first_worker = workers != cluster.tasks().end() && workers->second.contains(0);
  if (has_chief || has_first_worker || tasks_of_cluster(cluster) <= 1) return;
  refuse_launch(source, fmt::format("no task would be the chief: the cluster has neither a job 'chief' nor a worker 0; "
                                    "its jobs are [{}]",
                                    first_names(cluster.jobs())));
}

void check_own_task(const LaunchedTask& task, const std::string& source) {
  if (task.is_evaluator()) return;
  if (!task.cluster.has_job(task.job)) {
    refuse_launch(source, fmt::format("the cluster has no job '{}', the type of the own task; its jobs are [{}]",
                                      excerpt(task.job), first_names(task.cluster.jobs())));
  }
  if (task.cluster.tasks().at(task.job).contains(task.index)) return;
  refuse_launch(source, fmt::format("the job '{}' has no task {}, the index of the own task; it has {} tasks", task.job,
                                    task.index, task.cluster.num_tasks(task.job)));
}

}  // namespace

bool LaunchedTask::is_chief() const {
  if (job == jobs::kChief || job == jobs::kMaster) return true;
  if (is_ps() || is_evaluator()) return false;
  if (tasks_of_cluster(cluster) == 1) return true;
  const bool has_chief = cluster.has_job(jobs::kChief) || cluster.has_job(jobs::kMaster);
  return !has_chief && job == jobs::kWorker && index == 0;
}

std::string LaunchedTask::master() const {
  if (!session_master.empty()) return session_master;
  if (is_evaluator() || tasks_of_cluster(cluster) <= 1) return "";
  return "grpc://" + cluster.task_address(job, index);
}

std::vector<std::string> LaunchedTask::device_filters() const {
  if (cluster.empty()) return {};
  if (job == jobs::kChief || job == jobs::kMaster) return {"/job:ps", "/job:" + job};
  if (job == jobs::kWorker) return {"/job:ps", fmt::format("/job:worker/task:{}", index)};
  if (is_ps()) return {"/job:ps", "/job:worker", "/job:chief", "/job:master"};
  return {};
}

void check_launched_task(const LaunchedTask& task, const std::string& source) {
  if (task.index < 0) refuse_launch(source, fmt::format("the own task's index is {}, below 0", task.index));
  if (task.cluster.empty()) return;
  check_chiefs(task.cluster, source);
  check_own_task(task, source);
  check_somebody_is_chief(task.cluster, source);
  try {
    task.cluster.check_can_be_found();
  } catch (const InvalidArgumentError& error) {
    refuse_launch(source, error.what());
  }
}

}  // namespace longhaul
