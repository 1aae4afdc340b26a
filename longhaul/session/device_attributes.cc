#include "longhaul/session/device_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>

namespace longhaul {
namespace {

uint64_t random_incarnation(std::random_device& random) {
  return std::max<uint64_t>(1, (uint64_t{random()} << 32) | random());
}

}  // namespace

std::vector<DeviceAttributes> cpu_devices(const std::string& job, int task, int count) {
  std::random_device random;
  std::vector<DeviceAttributes> devices;
  for (int i = 0; i < count; ++i) {
    devices.push_back({.name = fmt::format("/job:{}/replica:0/task:{}/device:CPU:{}", job, task, i),
                       .device_type = "CPU",
                       .memory_limit = int64_t{256} << 20,
                       .incarnation = random_incarnation(random)});
  }
  return devices;
}

}  // namespace longhaul
