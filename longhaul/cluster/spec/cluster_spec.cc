#include "longhaul/cluster/spec/cluster_spec.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"
#include "longhaul/cluster/spec/task_address.h"
#include "longhaul/cluster/spec/task_name.h"
#include "longhaul/proto/cluster.pb.h"

namespace longhaul {
namespace {

template <typename Addresses>
std::map<int, std::string> numbered(const Addresses& addresses) {
  std::map<int, std::string> tasks;
  for (const std::string& address : addresses) tasks.emplace(static_cast<int>(tasks.size()), address);
  return tasks;
}

TaskAddress checked_address(const std::string& job, int index, const std::string& address) {
  try {
    return TaskAddress::parse(address);
  } catch (const InvalidArgumentError& error) {
    throw InvalidArgumentError(fmt::format("task {} of job '{}': {}", index, job, error.what()));
  }
}

std::string text_of(const JobTasks& tasks) {
  std::vector<std::string> texts;
  const bool is_list = tasks.is_list();
  for (const auto& [index, address] : tasks.by_index()) {
    texts.push_back(is_list ? fmt::format("'{}'", address) : fmt::format("{}: '{}'", index, address));
  }
  return fmt::format("{}{}{}", is_list ? '[' : '{', fmt::join(texts, ", "), is_list ? ']' : '}');
}

}  // namespace

JobTasks::JobTasks(std::initializer_list<std::string> addresses) : by_index_(numbered(addresses)) {}
JobTasks::JobTasks(const std::vector<std::string>& addresses) : by_index_(numbered(addresses)) {}

bool JobTasks::is_list() const {
  return by_index_.empty() ||
         (by_index_.begin()->first == 0 && by_index_.rbegin()->first == static_cast<int>(by_index_.size()) - 1);
}

std::vector<std::string> JobTasks::addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : by_index_) addresses.push_back(address);
  return addresses;
}

ClusterSpec::ClusterSpec(std::initializer_list<std::pair<const std::string, JobTasks>> jobs) {
  for (const auto& [job, tasks] : jobs) add_job(job, tasks.by_index());
  check_addresses();
}

ClusterSpec::ClusterSpec(const std::map<std::string, JobTasks>& jobs) {
  for (const auto& [job, tasks] : jobs) add_job(job, tasks.by_index());
  check_addresses();
}

ClusterSpec::ClusterSpec(const proto::ClusterDef& cluster) {
  for (const proto::JobDef& job : cluster.job()) add_job(job.name(), {job.tasks().begin(), job.tasks().end()});
  check_addresses();
}

void ClusterSpec::add_job(const std::string& job, const std::map<int, std::string>& tasks) {
  check_job_name(job);
  for (const auto& [index, address] : tasks) {
    if (index >= 0 && index <= kLastTask) continue;
    throw InvalidArgumentError(fmt::format("task {} of job '{}' ('{}'): an index must be from 0 to {}", index, job,
                                           excerpt(address), kLastTask));
  }
  if (!tasks_.emplace(job, tasks).second) {
    throw InvalidArgumentError(fmt::format("Duplicate job ID in cluster definition: '{}'", job));
  }
}

void ClusterSpec::check_addresses() const {
  std::map<std::string, TaskId> seen;
  for (const auto& [job, tasks] : tasks_) {
    for (const auto& [index, text] : tasks) {
      const TaskAddress address = checked_address(job, index, text);
      const auto [other, is_new] = seen.try_emplace(address.to_string(), TaskId{job, index});
      if (is_new || address.port == 0) continue;
      throw InvalidArgumentError(fmt::format("task {} of job '{}' and task {} of job '{}' have the same address {}",
                                             other->second.index, other->second.job, index, job, other->first));
    }
  }
}

void ClusterSpec::check_can_be_found() const {
  size_t count = 0;
  for (const auto& [job, tasks] : tasks_) count += tasks.size();
  for (const auto& [job, tasks] : tasks_) {
    for (const auto& [index, address] : tasks) {
      if (count == 1 || TaskAddress::parse(address).port != 0) continue;
      throw InvalidArgumentError(fmt::format(
          "task {} of job '{}' has the address {}: with port 0 the system chooses a port, which the other tasks do not "
          "know. Give the task a port, the same in the cluster specs of all tasks",
          index, job, address));
    }
  }
}

std::vector<std::string> ClusterSpec::jobs() const {
  std::vector<std::string> jobs;
  for (const auto& [job, tasks] : tasks_) jobs.push_back(job);
  return jobs;
}

const std::map<int, std::string>& ClusterSpec::tasks_of(const std::string& job) const {
  const auto found = tasks_.find(job);
  if (found != tasks_.end()) return found->second;
  throw InvalidArgumentError(
      fmt::format("No such job in cluster: '{}'; its jobs are [{}]", excerpt(job), first_names(jobs())));
}

int ClusterSpec::num_tasks(const std::string& job) const {
  return static_cast<int>(tasks_of(job).size());
}

std::vector<int> ClusterSpec::task_indices(const std::string& job) const {
  std::vector<int> indices;
  for (const auto& [index, address] : tasks_of(job)) indices.push_back(index);
  return indices;
}

const std::string& ClusterSpec::task_address(const std::string& job, int index) const {
  const std::map<int, std::string>& tasks = tasks_of(job);
  const auto found = tasks.find(index);
  if (found == tasks.end()) throw InvalidArgumentError(fmt::format("No task with index {} in job '{}'", index, job));
  return found->second;
}

std::vector<std::optional<std::string>> ClusterSpec::job_tasks(const std::string& job) const {
  const std::map<int, std::string>& tasks = tasks_of(job);
  if (tasks.empty()) return {};
  std::vector<std::optional<std::string>> by_index(static_cast<size_t>(tasks.rbegin()->first) + 1);
  for (const auto& [index, address] : tasks) by_index[static_cast<size_t>(index)] = address;
  return by_index;
}

std::map<std::string, JobTasks> ClusterSpec::as_dict() const {
  return {tasks_.begin(), tasks_.end()};
}

proto::ClusterDef ClusterSpec::as_cluster_def() const {
  proto::ClusterDef cluster;
  for (const auto& [job, tasks] : tasks_) {
    proto::JobDef& def = *cluster.add_job();
    def.set_name(job);
    for (const auto& [index, address] : tasks) (*def.mutable_tasks())[index] = address;
  }
  return cluster;
}

std::string ClusterSpec::to_string() const {
  std::vector<std::string> texts;
  for (const auto& [job, tasks] : tasks_) texts.push_back(fmt::format("'{}': {}", job, text_of(tasks)));
  return fmt::format("ClusterSpec({{{}}})", fmt::join(texts, ", "));
}

}  // namespace longhaul
