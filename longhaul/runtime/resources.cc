#include "longhaul/runtime/resources.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>

#include "longhaul/graph/device_spec.h"
#include "longhaul/host/seed.h"

namespace longhaul {
void SessionResources::check_device(const Operation& op) const {
  if (op.device().empty()) return;
  const DeviceSpec spec = DeviceSpec::parse(op.device());
  const bool here =
      (spec.job.empty() || spec.job == "localhost") && spec.replica.value_or(0) == 0 && spec.task.value_or(0) == 0;
  const bool exists = (spec.type.empty() || spec.type == "CPU") && spec.index.value_or(0) < cpu_devices_;
  if (here && exists) return;
  throw InvalidArgumentError(
      fmt::format("Cannot assign a device for operation {}: it was explicitly assigned to {}, but this session "
                  "has /job:localhost/replica:0/task:0/device:CPU:0 to {}",
                  op.name(), op.device(), cpu_devices_ - 1));
}

at::Generator SessionResources::generator(const std::string& operation) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = generators_.find(operation);
  if (found != generators_.end()) return found->second;
  const uint64_t seed = seed_ == 0 ? fresh_seed() : seed_ * 0x9e3779b97f4a7c15u ^ seed_of_name(operation);
  return generators_.emplace(operation, at::detail::createCPUGenerator(seed)).first->second;
}

}  // namespace longhaul
