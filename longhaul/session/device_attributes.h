#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace longhaul {

// A device of a session, with the fields of TensorFlow's message of that name.
struct DeviceAttributes {
  std::string name;          // full: "/job:localhost/replica:0/task:0/device:CPU:0"
  std::string device_type;   // "CPU" or "GPU"
  int64_t memory_limit = 0;  // bytes; for a CPU TensorFlow's constant, 256 MiB, which limits nothing
  uint64_t incarnation = 0;  // drawn when the task begins; never 0, and another one after a restart
  std::string physical_device_desc;
  bool operator==(const DeviceAttributes&) const = default;
};

// The devices of a task, with random incarnations. How much memory a GPU has is not known here: memory_limit is 0.
std::vector<DeviceAttributes> cpu_devices(const std::string& job, int task, int count);
std::vector<DeviceAttributes> gpu_devices(const std::string& job, int task, int count);

}  // namespace longhaul
