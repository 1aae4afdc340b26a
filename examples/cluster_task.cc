#include "examples/cluster_task.h"

#include <fmt/format.h>

#include <filesystem>

#include "longhaul/base.h"

namespace longhaul::examples {
namespace {

LaunchedTask task_from_flags(const ClusterOptions& options) {
  std::map<std::string, JobTasks> cluster;
  for (const auto& [job, hosts] : {std::pair(jobs::kChief, &options.chief_hosts),
                                   {jobs::kWorker, &options.worker_hosts},
                                   {jobs::kPs, &options.ps_hosts}}) {
    if (!hosts->empty()) cluster.emplace(job, *hosts);
  }
  LaunchedTask task{.cluster = ClusterSpec(cluster), .job = options.job, .index = options.task};
  check_launched_task(task, fmt::format("--job={} --task={}", options.job, options.task));
  return task;
}

LaunchedTask any_task(const ClusterOptions& options) {
  if (!options.job.empty()) return task_from_flags(options);
  if (process_environment()("TF_CONFIG")) return task_from_tf_config();
  if (options.slurm_ps == 0) return {};
  return task_from_slurm(
      {.jobs = {{jobs::kChief, 1}, {jobs::kPs, options.slurm_ps}, {jobs::kWorker, SlurmOptions::kOtherTasks}}});
}

TransportSecurity security_of(const LaunchedTask& task, const ClusterOptions& options) {
  TransportSecurity security{.token_file = options.token_file, .insecure = options.insecure};
  if (options.certificates.empty()) return security;
  const std::string own = fmt::format("{}/{}-{}", options.certificates, task.job, task.index);
  security.certificate_file = own + ".crt";
  security.key_file = own + ".key";
  security.ca_file = options.certificates + "/ca.crt";
  return security;
}

}  // namespace

LaunchedTask launched_task(const ClusterOptions& options) {
  LaunchedTask task = any_task(options);
  if (task.is_evaluator())
    throw InvalidArgumentError("this program has no evaluator: start chief, workers and ps only");
  return task;
}

ServerOptions server_options(const LaunchedTask& task, const ClusterOptions& options) {
  std::vector<std::string> roots = options.file_roots;
  if (roots.empty()) roots.push_back(std::filesystem::absolute(options.logdir).lexically_normal().string());
  return {.job_name = task.job, .task_index = task.index, .security = security_of(task, options), .file_roots = roots};
}

Share share_of(const LaunchedTask& task) {
  if (task.cluster.empty()) return {};
  const int chiefs = task.cluster.has_job(jobs::kChief) || task.cluster.has_job(jobs::kMaster) ? 1 : 0;
  const int workers = task.cluster.has_job(jobs::kWorker) ? task.cluster.num_tasks(jobs::kWorker) : 0;
  return {.number = task.job == jobs::kWorker ? chiefs + task.index : 0, .of = chiefs + workers};
}

}  // namespace longhaul::examples
