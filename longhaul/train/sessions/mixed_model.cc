#include "longhaul/train/sessions/mixed_model.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "longhaul/base/first_names.h"
#include "longhaul/graph/device_spec.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/train/sessions/readiness.h"

namespace longhaul {
namespace {

struct OnTask {
  std::vector<std::string> there, missing;
};

std::map<std::string, OnTask> variables_by_task(const Graph& graph, const std::vector<std::string>& missing) {
  const std::unordered_set<std::string> lacks(missing.begin(), missing.end());
  std::map<std::string, OnTask> tasks;
  for (const VariableInfo& info : graph.collection_of<VariableInfo>(collections::kGlobalVariables)) {
    const Operation variable = info.ref.op();
    OnTask& task = tasks[DeviceSpec::parse(variable.device()).without_type().to_string()];
    (lacks.contains(variable.name()) ? task.missing : task.there).push_back(variable.name());
  }
  return tasks;
}

// 0: it has none, or no step was made.
int64_t step_of_model(Session& session, const std::unordered_set<std::string>& lacks) {
  const std::optional<Variable> step = ops::get_global_step(session.graph());
  if (!step || lacks.contains(step->ref().op().name())) return 0;
  return session.run(*step).item<int64_t>();
}

}  // namespace

void check_no_other_program_has_model(Session& session, const Output& ready_op) {
  const Readiness ready = check_ready(session, ready_op);
  if (ready.missing.empty()) return;
  for (const auto& [task, variables] : variables_by_task(session.graph(), ready.missing)) {
    if (variables.there.empty() || variables.missing.empty()) continue;
    const int64_t step = step_of_model(session, {ready.missing.begin(), ready.missing.end()});
    if (step == 0) return;
    throw FailedPreconditionError(fmt::format(
        "the servers have a model at step {}, of which {} has {}, but not {}: it is that of a program with other "
        "variables, or with these on other tasks, and whoever still trains it would go on with variables that nobody "
        "saves. End the other programs of that training, and end or reset the servers (Session::reset), or start this "
        "program with the variables and devices that it had",
        step, task.empty() ? "this task" : task, first_names(variables.there), first_names(variables.missing)));
  }
}

}  // namespace longhaul
