#include "longhaul/train/sessions/readiness.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_set>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

bool means_uninitialized(const Error& error) {
  return error.code() == Code::kFailedPrecondition &&
         std::string_view(error.what()).find("uninitialized") != std::string::npos;
}

using OperationSet = std::unordered_set<Operation, OperationHash>;

OperationSet variables_in(const Graph& graph, const char* collection) {
  OperationSet variables;
  for (const VariableInfo& info : graph.collection_of<VariableInfo>(collection)) variables.insert(info.ref.op());
  return variables;
}

bool depends_on_any_of(const Operation& start, const OperationSet& wanted) {
  std::vector<Operation> pending{start};
  OperationSet seen{start};
  while (!pending.empty()) {
    const Operation op = pending.back();
    pending.pop_back();
    if (wanted.contains(op)) return true;
    const auto visit = [&](const Operation& next) {
      if (seen.insert(next).second) pending.push_back(next);
    };
    for (const Output& input : op.inputs()) visit(input.op());
    for (const Operation& control : op.control_inputs()) visit(control);
  }
  return false;
}

}  // namespace

Readiness check_ready(Session& session, const Output& ready_op) {
  if (!ready_op.valid()) return {};
  try {
    const Tensor names = session.run(ready_op);
    if (!names.defined() || names.dtype() != kString) return {};
    std::vector<std::string> missing(names.flat<std::string>().begin(), names.flat<std::string>().end());
    std::erase(missing, "");
    if (missing.empty()) return {};
    if (names.shape().rank() == 0) return {.ready = false, .why = missing.front()};
    return {false, fmt::format("Variables not initialized: {}", fmt::join(missing, ", ")), missing};
  } catch (const Error& error) {
    if (means_uninitialized(error)) return {false, error.what()};
    if (error.code() == Code::kFailedPrecondition) log_warning("the ready operation failed: {}", error.what());
    throw;
  }
}

bool model_is_there(Session& session, const Output& ready_op) {
  if (!ready_op.valid()) return false;
  const Graph& graph = session.graph();
  if (!depends_on_any_of(ready_op.op(), variables_in(graph, collections::kGlobalVariables))) return false;
  const Readiness found = check_ready(session, ready_op);
  if (found.ready) return true;
  const OperationSet local = variables_in(graph, collections::kLocalVariables);
  return !found.missing.empty() && std::all_of(found.missing.begin(), found.missing.end(), [&](auto& name) {
    const Operation op = graph.find_operation(name);
    return op.valid() && local.contains(op);
  });
}

}  // namespace longhaul
