#include "longhaul/runtime/plan/needed_graph.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/host/kernels/host_kernel.h"
#include "longhaul/session/needed_operations.h"

namespace longhaul {
namespace {

bool writes(const Operation& op) {
  return (op.traits() & kWritesVariable) != 0;
}

// A write that may fail in the middle of a run, by what the program does in it.
bool is_program_step(const Operation& op) {
  return op.type() == "ProgramStep";
}

}  // namespace

NeededGraph::NeededGraph(const Session::Request& request) : fed_(request.feeds.begin(), request.feeds.end()) {
  std::vector<Operation> targets;
  for (const Fetch::Target& fetch : request.fetches) {
    if (fetch.is_operation() || !is_fed(fetch.output())) targets.push_back(fetch.op);
  }
  needed_ = needed_operations(targets, request.feeds);
  std::sort(needed_.begin(), needed_.end(), [](const Operation& a, const Operation& b) { return a.id() < b.id(); });
  if (request.options.snapshot) check_snapshot();
  find_what_follows_writes();
  for (const Operation& op : needed_) {
    if (find_host_kernel(op.type()) != nullptr) continue;
    for (const Output& input : op.inputs()) for_libtorch_.insert(input);
  }
}

void NeededGraph::check_snapshot() const {
  const auto write = std::find_if(needed_.begin(), needed_.end(), writes);
  if (write == needed_.end()) return;
  throw InvalidArgumentError(fmt::format(
      "a snapshot run must not write variables, but {} ({}) does. Use a separate run for the values to read",
      write->name(), write->type()));
}

bool NeededGraph::depends_on_any_of(const Operation& op, const OperationSet& set) const {
  for (const Output& input : op.inputs()) {
    if (!is_fed(input) && set.contains(input.op())) return true;
  }
  return std::any_of(op.control_inputs().begin(), op.control_inputs().end(),
                     [&](const Operation& control) { return set.contains(control); });
}

void NeededGraph::find_what_follows_writes() {
  OperationSet write_or_after;
  for (const Operation& op : needed_) {
    const bool after = depends_on_any_of(op, write_or_after);
    if (after) after_write_.insert(op);
    if (after || writes(op)) write_or_after.insert(op);
  }
}

// First what no write precedes; then, as long as there are writes to come, writes where they are ready and else the
// first operation that is; then the rest. Of the writes a step of the program's is the first: if it fails, the others
// are not made. Graphs are built in an order of dependencies, so order of creation is one to fall back on.
std::vector<Operation> NeededGraph::ordered() const {
  std::vector<Operation> order, rest;
  OperationSet waiting;
  for (const Operation& op : needed_) {
    if (depends_on_write(op) || writes(op)) {
      rest.push_back(op);
      waiting.insert(op);
    } else {
      order.push_back(op);
    }
  }
  while (!rest.empty()) {
    const auto ready = [&](const Operation& op) { return !depends_on_any_of(op, waiting); };
    auto next =
        std::find_if(rest.begin(), rest.end(), [&](const Operation& op) { return is_program_step(op) && ready(op); });
    if (next == rest.end())
      next = std::find_if(rest.begin(), rest.end(), [&](const Operation& op) { return writes(op) && ready(op); });
    if (next == rest.end()) next = std::find_if(rest.begin(), rest.end(), ready);
    order.push_back(*next);
    waiting.erase(*next);
    rest.erase(next);
  }
  return order;
}

}  // namespace longhaul
