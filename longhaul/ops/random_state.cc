#include "longhaul/ops/random_state.h"

#include <unordered_map>
#include <unordered_set>

#include "longhaul/graph/builtin/random_state.h"
#include "longhaul/ops/state_ops.h"

namespace longhaul::ops {
namespace {

using OperationSet = std::unordered_set<Operation, OperationHash>;

OperationSet initializers_of(const Graph& graph) {
  OperationSet initializers;
  for (const auto& variables : {global_variables(graph), local_variables(graph)}) {
    for (const VariableInfo& variable : variables) initializers.insert(variable.initializer);
  }
  return initializers;
}

// Whether somebody looks at the operation's results but for a first value of a variable. `needed` are the operations
// later in the graph that are looked at so.
bool is_for_more_than_initializers(const Operation& op, const std::vector<Operation>& users,
                                   const OperationSet& initializers, const OperationSet& needed) {
  if (initializers.contains(op) || op.type() == "InitializedValue") return false;
  return users.empty() || std::any_of(users.begin(), users.end(), [&](auto& user) { return needed.contains(user); });
}

// Operations come before their users, so one pass from the end finds them all. In order of creation.
std::vector<Operation> operations_that_draw(const Graph& graph) {
  const OperationSet initializers = initializers_of(graph);
  const std::vector<Operation> all = graph.operations();
  std::unordered_map<Operation, std::vector<Operation>, OperationHash> users;
  for (const Operation& op : all) {
    for (const Output& input : op.inputs()) users[input.op()].push_back(op);
  }
  OperationSet needed;
  std::vector<Operation> drawing;
  for (auto op = all.rbegin(); op != all.rend(); ++op) {
    if (!is_for_more_than_initializers(*op, users[*op], initializers, needed)) continue;
    needed.insert(*op);
    if (has_random_stream(*op)) drawing.push_back(*op);
  }
  return {drawing.rbegin(), drawing.rend()};
}

Attrs beside(const Operation& op) {
  return {{"_class", std::vector<std::string>{"loc:@" + op.name()}}};
}

Output state_of(Graph& graph, const Operation& op) {
  const std::string name = "longhaul/random_state/" + op.name();
  if (graph.name_taken(name)) return graph.operation(name).output();
  return Scope(graph).with_device(op.device()).add("RandomState", name, {}, beside(op)).output();
}

}  // namespace

std::vector<Saveable> random_saveables(Graph& graph) {
  std::vector<Saveable> saveables;
  for (const Operation& op : operations_that_draw(graph)) {
    const std::string key = std::string(kRandomStatePrefix) + op.name();
    saveables.push_back({.name = key,
                         .parts = {{key, state_of(graph, op)}},
                         .restore =
                             [op](const Scope& scope, const std::vector<Output>& restored) {
                               return scope.add("RestoreRandomState", "RestoreRandomState", {restored[0]}, beside(op));
                             },
                         .optional = true});
  }
  return saveables;
}

}  // namespace longhaul::ops
