#include "longhaul/runtime/state/resources.h"

#include <fmt/format.h>

#include "longhaul/graph/device_spec.h"

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

}  // namespace longhaul
