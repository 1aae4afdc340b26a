#include "longhaul/session/device_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace longhaul {
namespace {

uint64_t random_incarnation(std::random_device& random) {
  return std::max<uint64_t>(1, (uint64_t{random()} << 32) | random());
}

std::vector<DeviceAttributes> devices_of(const std::string& job, int task, const char* type, int count,
                                         int64_t memory_limit) {
  std::random_device random;
  std::vector<DeviceAttributes> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back({.name = fmt::format("/job:{}/replica:0/task:{}/device:{}:{}", job, task, type, i),
                       .device_type = type,
                       .memory_limit = memory_limit,
                       .incarnation = random_incarnation(random)});
  }
  return devices;
}

}  // namespace

std::vector<DeviceAttributes> cpu_devices(const std::string& job, int task, int count) {
  return devices_of(job, task, "CPU", count, /*memory_limit=*/int64_t{256} << 20);
}

std::vector<DeviceAttributes> gpu_devices(const std::string& job, int task, int count) {
  return devices_of(job, task, "GPU", count, /*memory_limit=*/0);
}

}  // namespace longhaul
