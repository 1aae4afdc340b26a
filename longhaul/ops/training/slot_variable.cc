#include "longhaul/ops/training/slot_variable.h"

#include <fmt/format.h>

namespace longhaul::ops {

Variable slot_variable(const Scope& scope, const Variable& primary, std::string_view name,
                       const std::function<Output(const Scope& scope)>& initial_value) {
  const std::string& prefix = scope.slot_prefix();
  Graph& graph = primary.ref().graph();
  const Scope root = Scope(graph).with_device(primary.ref().op().device());
  const std::string full_name = free_name(graph, fmt::format("{}{}/{}", prefix, primary.name(), name));
  VariableOptions options = {.trainable = false};
  if (primary.info().slice) {
    options.slice = primary.info().slice;
    const std::string slot = full_name.substr(prefix.size() + primary.name().size());
    options.slice->full_name = prefix + options.slice->full_name + slot;
  }
  return variable(root, full_name, initial_value(root.within(full_name)), options);
}

std::string free_name(const Graph& graph, const std::string& name) {
  std::string candidate = name;
  for (int suffix = 1; graph.name_taken(candidate); ++suffix) candidate = fmt::format("{}_{}", name, suffix);
  return candidate;
}

}  // namespace longhaul::ops
