#include "longhaul/train/hooks/steps_by_hooks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "longhaul/base/log.h"
#include "longhaul/ops/external_variable.h"
#include "longhaul/session/needed_operations.h"
#include "longhaul/train/hooks/hook_call.h"

namespace longhaul {
namespace {

std::string fetched_names(const SessionRunArgs& part, const Graph& graph) {
  std::vector<std::string> names;
  for (const Fetch& fetch : part.fetches) {
    const Fetch::Target target = fetch.resolve(graph);
    names.push_back(target.is_operation() ? target.op.name() : target.output().name());
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

StepsByHooks::StepsByHooks(const Graph& graph) : graph_(graph), is_to_be_told_(ops::has_program_step(graph)) {}

bool StepsByHooks::makes_step(const SessionRunArgs& part) const {
  std::vector<Operation> targets;
  for (const Fetch& fetch : part.fetches) targets.push_back(fetch.resolve(graph_).op);
  const std::vector<Operation> needed = needed_operations(targets);
  return std::any_of(needed.begin(), needed.end(), ops::is_program_step);
}

void StepsByHooks::look(std::span<const SessionRunArgs* const> parts, const SessionRunHooks& hooks) {
  if (!is_to_be_told_ || makes_step(*parts[0])) return;
  const auto part = std::find_if(parts.begin() + 1, parts.end(), [this](auto* args) { return makes_step(*args); });
  if (part == parts.end()) return;
  is_to_be_told_ = false;
  const SessionRunHook& hook = *hooks[static_cast<size_t>(part - parts.begin()) - 1];
  log_warning(
      "a run of {} is a training step, because the hook {} fetches {} along with it, which only a step has. Make runs "
      "that are not to train without the hooks: session.run_step_fn([&](lh::StepContext& context) {{ "
      "context.session().run(...); }})",
      fetched_names(*parts[0], graph_), class_name(hook), fetched_names(**part, graph_));
}

}  // namespace longhaul
