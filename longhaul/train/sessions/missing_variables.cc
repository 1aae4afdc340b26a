#include "longhaul/train/sessions/missing_variables.h"

#include <algorithm>
#include <set>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/session/needed_operations.h"
#include "longhaul/train/sessions/readiness.h"

namespace longhaul {
namespace {

using Names = std::set<std::string>;

// Global variables that the operation looks at; none for an invalid one.
Names looked_at(const Graph& graph, const Output& ready_op) {
  Names names;
  if (!ready_op.valid()) return names;
  Names global;
  for (const VariableInfo& variable : ops::global_variables(graph)) global.insert(variable.ref.op().name());
  for (const Operation& op : needed_operations({ready_op.op()})) {
    if (global.contains(op.name())) names.insert(op.name());
  }
  return names;
}

Names written_by(const std::vector<Operation>& targets) {
  Names names;
  for (const Operation& op : needed_operations(targets)) {
    if ((op.traits() & kWritesVariable) == 0) continue;
    for (size_t i = 0; i < static_cast<size_t>(op.ref_inputs()); ++i) names.insert(op.inputs()[i].op().name());
  }
  return names;
}

Names without(const Names& names, const Names& others) {
  Names rest;
  std::set_difference(names.begin(), names.end(), others.begin(), others.end(), std::inserter(rest, rest.end()));
  return rest;
}

Names named_by(Session& session, const Output& ready_op) {
  const std::vector<std::string> missing = check_ready(session, ready_op).missing;
  return {missing.begin(), missing.end()};
}

}  // namespace

std::vector<std::string> missing_after_restore(const Graph& graph, const Saver& saver, const ReadinessOps& ops) {
  const std::string restore_op = saver.to_proto().restore_op_name();
  if (restore_op.empty()) return {};
  const Names restored = written_by({graph.operation(restore_op)});
  Names missing = without(looked_at(graph, ops.ready_for_local_init_op), restored);
  missing.merge(without(without(looked_at(graph, ops.ready_op), restored), written_by(ops.local_init_op)));
  return {missing.begin(), missing.end()};
}

void warn_of_missing_after_restore(const std::vector<std::string>& names) {
  if (names.empty()) return;
  log_warning(
      "the saver does not save {} of the global variables: {}. A run restored from its checkpoints has no values for "
      "them and will not start. Save them too, make them local variables, set them in a local_init_op, or set "
      "initialize_missing: then their initializers run after each restore",
      names.size(), first_names(names));
}

std::vector<std::string> initialize_missing(Session& session, const ReadinessOps& ops, const Feeds& feeds) {
  Names missing = named_by(session, ops.ready_for_local_init_op);
  missing.merge(named_by(session, ops.ready_op));
  std::vector<Fetch> initializers;
  std::vector<std::string> names;
  for (const VariableInfo& variable : ops::global_variables(session.graph())) {
    if (!missing.contains(variable.ref.op().name())) continue;
    initializers.emplace_back(variable.initializer);
    names.push_back(variable.ref.op().name());
  }
  if (!initializers.empty()) session.run(initializers, feeds);
  return names;
}

}  // namespace longhaul
