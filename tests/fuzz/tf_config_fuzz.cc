// The text of the variable TF_CONFIG. Its cluster can be written and read again, and the own task is one of it.
#include <optional>

#include "longhaul/base/error.h"
#include "longhaul/launch/tf_config.h"

namespace longhaul {
namespace {

std::optional<LaunchedTask> parse(const uint8_t* data, size_t size) {
  try {
    return parse_tf_config({reinterpret_cast<const char*>(data), size});
  } catch (const InvalidArgumentError&) {
    return std::nullopt;
  }
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  const auto task = parse(data, size);
  if (!task) return 0;
  if (ClusterSpec(task->cluster.as_dict()) != task->cluster) __builtin_trap();
  if (task->index < 0 || (task->is_ps() && task->is_chief())) __builtin_trap();
  if (task->master().empty() && task->cluster.jobs().size() > 1 && !task->is_evaluator()) {
    for (const std::string& job : task->cluster.jobs()) {
      if (task->cluster.num_tasks(job) > 1) __builtin_trap();
    }
  }
  task->device_filters();
  return 0;
}
