#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace longhaul {

class ClusterSpec;

// A task of a cluster.
struct TaskId {
  std::string job;
  int index = 0;
  auto operator<=>(const TaskId&) const = default;
};

// "/job:worker/replica:0/task:1", the name of a task in messages and on the wire; the beginning of its devices' names.
std::string task_name(const TaskId& task);

// The task of that name; the replica may be left out. InvalidArgumentError: it is not the name of a task, or the
// replica is not 0.
TaskId parse_task_name(std::string_view name);

// The address of the task of that name. InvalidArgumentError: also if the cluster has no such task.
const std::string& address_of(const ClusterSpec& cluster, std::string_view task_name);

// InvalidArgumentError: devices cannot name a job so. A job's name is a letter, followed by letters, digits and '_'.
void check_job_name(std::string_view job);

}  // namespace longhaul
