// The variables of a Slurm step: the first byte is the rank, the second the number of tasks; then the list of nodes, as
// counted bytes, and the tasks on each. The own task is one of the cluster, at an address of one of the nodes.
#include <algorithm>
#include <optional>

#include "longhaul/base/error.h"
#include "longhaul/launch/host_list.h"
#include "longhaul/launch/slurm.h"
#include "tests/fuzz/input.h"

namespace longhaul {
namespace {

std::map<std::string, std::string> variables_in(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::map<std::string, std::string> variables;
  variables["SLURM_PROCID"] = std::to_string(input.byte());
  variables["SLURM_NTASKS"] = std::to_string(input.byte());
  variables["SLURM_STEP_NODELIST"] = input.counted_bytes();
  variables["SLURM_STEP_TASKS_PER_NODE"] = input.rest();
  return variables;
}

std::optional<LaunchedTask> launched(const std::map<std::string, std::string>& variables) {
  try {
    return task_from_slurm({.jobs = {{"ps", 1}, {"worker", SlurmOptions::kOtherTasks}}}, environment_of(variables));
  } catch (const InvalidArgumentError&) {
    return std::nullopt;
  }
}

}  // namespace
}  // namespace longhaul

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace longhaul;
  const auto variables = variables_in(data, size);
  const auto task = launched(variables);
  if (!task) return 0;
  const std::string address = task->cluster.task_address(task->job, task->index);
  const auto hosts = expand_host_list(variables.at("SLURM_STEP_NODELIST"));
  const auto is_its_host = [&](const std::string& host) { return address.starts_with(host + ":"); };
  if (std::none_of(hosts.begin(), hosts.end(), is_its_host)) __builtin_trap();
  return 0;
}
