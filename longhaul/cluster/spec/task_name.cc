#include "longhaul/cluster/spec/task_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/spec/cluster_spec.h"
#include "longhaul/graph/device_spec.h"

namespace longhaul {
namespace {

constexpr size_t kLongestJobName = 255;

bool is_job_letter(unsigned char c) {
  return std::isalnum(c) != 0 || c == '_';
}

}  // namespace

std::string task_name(const TaskId& task) {
  return fmt::format("/job:{}/replica:0/task:{}", task.job, task.index);
}

TaskId parse_task_name(std::string_view name) {
  const DeviceSpec spec = DeviceSpec::parse(name);
  if (spec.job.empty() || !spec.task || spec.replica.value_or(0) != 0 || !spec.type.empty()) {
    throw InvalidArgumentError(
        fmt::format("'{}' is not the name of a task: want /job:NAME/replica:0/task:N", excerpt(name)));
  }
  return {spec.job, *spec.task};
}

const std::string& address_of(const ClusterSpec& cluster, std::string_view task_name) {
  const TaskId task = parse_task_name(task_name);
  return cluster.task_address(task.job, task.index);
}

void check_job_name(std::string_view job) {
  const bool begins_well = !job.empty() && std::isalpha(static_cast<unsigned char>(job[0])) != 0;
  if (begins_well && job.size() <= kLongestJobName && std::all_of(job.begin(), job.end(), is_job_letter)) return;
  throw InvalidArgumentError(
      fmt::format("Job name '{}' must be a letter, followed by letters, digits and '_', at most "
                  "{} in all",
                  excerpt(job), kLongestJobName));
}

}  // namespace longhaul
