#include "longhaul/train/hook_step.h"

#include <fmt/format.h>

#include "longhaul/ops/state_ops.h"

namespace longhaul {

void HookStep::find(const Graph& graph, const char* hook) {
  const auto step = ops::get_global_step(graph);
  if (!step) {
    throw FailedPreconditionError(
        fmt::format("Global step should be created to use {}: call ops::global_step() where the graph is made", hook));
  }
  tensor_ = *step;
  args_ = {.fetches = {tensor_}};
}

int64_t HookStep::now(Session& session) const {
  return session.run(tensor_).item<int64_t>();
}

}  // namespace longhaul
