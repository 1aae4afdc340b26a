#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/device_spec.h"

namespace longhaul {

// A task of a cluster, and what it said about its devices. Nobody is asked in vain: a task that no run has named is
// taken to have one CPU, and any other device that is asked for, until it says so itself.
struct TaskDevices {
  DeviceSpec task;                    // "/job:ps/replica:0/task:0"
  uint64_t incarnation = 0;           // 0: the task was not asked yet
  std::vector<DeviceSpec> devices{};  // full names; what it is asked for first comes first

  bool asked() const { return incarnation != 0; }
  bool operator==(const TaskDevices&) const = default;
};

// The devices that a session may use. Immutable.
class DeviceList {
 public:
  // Leaves out the tasks of which no device matches any of the filters, and of the others these devices; no filters:
  // none. A session's own task always stays. InvalidArgumentError: a filter is malformed, a task's name is not full, a
  // task comes twice, or the own task is not among them.
  DeviceList(std::vector<TaskDevices> tasks, const DeviceSpec& own_task, const std::vector<std::string>& filters = {});

  // The own task first, then by job and number.
  const std::vector<TaskDevices>& tasks() const { return tasks_; }

  // The first device of these tasks that matches; of a task that was not asked, one made up. nullopt: there is none.
  std::optional<DeviceSpec> find(const DeviceSpec& wanted) const;

  std::vector<std::string> names() const;  // of all devices, sorted

 private:
  std::vector<TaskDevices> tasks_;
};

}  // namespace longhaul
