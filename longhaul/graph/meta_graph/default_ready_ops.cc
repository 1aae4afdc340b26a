#include "longhaul/graph/meta_graph/default_ready_ops.h"

#include <vector>

namespace longhaul {
namespace {

void add_refs(const Graph& graph, const char* collection, std::vector<Output>* refs) {
  for (const VariableInfo& variable : graph.collection_of<VariableInfo>(collection)) refs->push_back(variable.ref);
}

void erase_used(const Graph& graph, std::set<std::string>* names) {
  for (const Operation& op : graph.operations()) {
    for (const Output& input : op.inputs()) names->erase(input.op().name());
    for (const Operation& control : op.control_inputs()) names->erase(control.name());
  }
}

}  // namespace

std::set<std::string> default_ready_ops(const Graph& graph) {
  std::vector<Output> globals;
  add_refs(graph, collections::kGlobalVariables, &globals);
  std::vector<Output> all = globals;
  add_refs(graph, collections::kLocalVariables, &all);
  std::set<std::string> names;
  for (const Operation& op : graph.operations()) {
    if (op.type() != "ReportUninitializedVariables") continue;
    if (op.inputs() == globals || op.inputs() == all) names.insert(op.name());
  }
  if (!names.empty()) erase_used(graph, &names);
  return names;
}

}  // namespace longhaul
