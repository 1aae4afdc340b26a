#include "longhaul/placement/device_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

std::vector<DeviceSpec> parse_filters(const std::vector<std::string>& filters) {
  std::vector<DeviceSpec> parsed;
  for (const std::string& filter : filters) {
    try {
      parsed.push_back(DeviceSpec::parse(filter));
    } catch (const InvalidArgumentError& error) {
      throw InvalidArgumentError(fmt::format("device filter: {}", error.what()));
    }
  }
  return parsed;
}

void check_task(const DeviceSpec& task) {
  if (!task.job.empty() && task.replica && task.task && task == task.without_type()) return;
  throw InvalidArgumentError(
      fmt::format("'{}' is not the name of a task: want /job:NAME/replica:0/task:N", task.to_string()));
}

void complete_devices(TaskDevices& task) {
  if (task.asked()) return;
  DeviceSpec cpu = task.task;
  cpu.type = "CPU";
  cpu.index = 0;
  task.devices = {cpu};
}

void filter_devices(TaskDevices& task, const std::vector<DeviceSpec>& filters) {
  if (filters.empty()) return;
  std::erase_if(task.devices, [&](const DeviceSpec& device) {
    return std::none_of(filters.begin(), filters.end(),
                        [&](const DeviceSpec& filter) { return filter.matches(device); });
  });
}

// What a task that was not asked is taken to have.
DeviceSpec made_up(const TaskDevices& task, const DeviceSpec& wanted) {
  DeviceSpec device = task.devices.front().merged_with(wanted);
  if (!wanted.type.empty() && !wanted.index) device.index = 0;
  return device;
}

}  // namespace

DeviceList::DeviceList(std::vector<TaskDevices> tasks, const DeviceSpec& own_task,
                       const std::vector<std::string>& filters) {
  const std::vector<DeviceSpec> parsed = parse_filters(filters);
  for (TaskDevices& task : tasks) {
    check_task(task.task);
    complete_devices(task);
    if (task.task != own_task) filter_devices(task, parsed);
    if (!task.devices.empty()) tasks_.push_back(std::move(task));
  }
  const auto rank = [&](const TaskDevices& task) {
    return std::tuple(task.task != own_task, task.task.job, *task.task.replica, *task.task.task);
  };
  std::sort(tasks_.begin(), tasks_.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  const auto twice =
      std::adjacent_find(tasks_.begin(), tasks_.end(), [](const auto& a, const auto& b) { return a.task == b.task; });
  if (twice != tasks_.end()) throw InvalidArgumentError(fmt::format("task {} comes twice", twice->task.to_string()));
  if (tasks_.empty() || tasks_.front().task != own_task) {
    throw InvalidArgumentError(fmt::format("the session's own task {} has no devices", own_task.to_string()));
  }
}

std::optional<DeviceSpec> DeviceList::find(const DeviceSpec& wanted) const {
  for (const TaskDevices& task : tasks_) {
    for (const DeviceSpec& device : task.devices) {
      if (wanted.matches(device)) return device;
    }
    if (!task.asked() && wanted.without_type().matches(task.task)) return made_up(task, wanted);
  }
  return std::nullopt;
}

std::vector<std::string> DeviceList::names() const {
  std::vector<std::string> names;
  for (const TaskDevices& task : tasks_) {
    for (const DeviceSpec& device : task.devices) names.push_back(device.to_string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace longhaul
