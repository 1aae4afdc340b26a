#include "longhaul/train/hook_tensor.h"

#include <fmt/format.h>

namespace longhaul {

Output hook_tensor(const Graph& graph, const Fetch& fetch, const char* hook) {
  const Fetch::Target target = fetch.resolve(graph);
  if (!target.is_operation()) return target.output();
  throw InvalidArgumentError(fmt::format("{}: {} is an operation, which has no value; name its output, as in \"{}:0\"",
                                         hook, target.op.name(), target.op.name()));
}

}  // namespace longhaul
