#include "longhaul/graph/missing_name.h"

#include <fmt/format.h>

#include "longhaul/base/nearest_name.h"
#include "longhaul/graph/node_input.h"

namespace longhaul {
namespace {

Operation nearest_operation(const Graph& graph, std::string_view name) {
  NearestName nearest(name);
  for (const Operation& op : graph.operations()) nearest.offer(op.name());
  return nearest.found().empty() ? Operation() : graph.find_operation(nearest.found());
}

}  // namespace

std::string tensors_text(const Operation& op) {
  switch (const int count = op.num_outputs()) {
    case 0: return "none";
    case 1: return fmt::format("'{}'", op.output(0).name());
    case 2: return fmt::format("'{}' and '{}'", op.output(0).name(), op.output(1).name());
    default: return fmt::format("'{}' to '{}'", op.output(0).name(), op.output(count - 1).name());
  }
}

std::string missing_operation_text(const Graph& graph, std::string_view name) {
  std::string text = fmt::format("The name '{}' refers to an operation that is not in the graph", name);
  if (graph.num_operations() == 0) return text + "; the graph is empty: was the model built in another graph?";
  const Operation nearest = nearest_operation(graph, name);
  return nearest ? text + fmt::format("; did you mean '{}'?", nearest.name()) : text;
}

std::string missing_tensor_text(const Graph& graph, std::string_view name) {
  std::string text = fmt::format("The name '{}' refers to a tensor that is not in the graph", name);
  if (graph.num_operations() == 0) return text + "; the graph is empty: was the model built in another graph?";
  const std::string_view op_name = operation_name(name);
  if (const Operation op = graph.find_operation(op_name)) {
    return text + fmt::format(": the tensors of operation '{}' ({}) are {}", op_name, op.type(), tensors_text(op));
  }
  const Operation nearest = nearest_operation(graph, op_name);
  if (nearest && nearest.num_outputs() > 0) return text + fmt::format("; did you mean {}?", tensors_text(nearest));
  return text + " (want NAME:INDEX, as 'loss:0')";
}

}  // namespace longhaul
