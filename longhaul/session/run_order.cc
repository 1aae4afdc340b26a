#include "longhaul/session/run_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>

#include "longhaul/base/error.h"
#include "longhaul/session/needed_operations.h"

namespace longhaul {
namespace {

// What comes first of all that is ready. A write that runs the program's own step may fail in the middle of a run; if
// it comes before the others, they are not made then.
size_t urgency(const Operation& op) {
  if (op.type() == "ProgramStep") return 0;
  return writes_variable(op) ? 1 : 2;
}

// The operations of a list that wait for others of it. Positions in the list stand for operations.
class Waiting {
 public:
  Waiting(const std::vector<Operation>& ops, const RunOrder& run)
      : ops_(ops), missing_(ops.size()), users_(ops.size()) {
    std::unordered_map<Operation, size_t, OperationHash> positions;
    for (size_t i = 0; i < ops.size(); ++i) positions.emplace(ops[i], i);
    for (size_t i = 0; i < ops.size(); ++i) {
      const auto follow = [&](const Operation& needed) {
        const auto it = positions.find(needed);
        if (it == positions.end()) return;
        ++missing_[i];
        users_[it->second].push_back(i);
      };
      for (const Output& input : ops[i].inputs()) {
        if (!run.is_fed(input)) follow(input.op());
      }
      for (const Operation& control : ops[i].control_inputs()) follow(control);
    }
    for (size_t i = 0; i < ops.size(); ++i) {
      if (missing_[i] == 0) ready_[urgency(ops[i])].insert(i);
    }
  }

  // nullopt: none is left.
  std::optional<size_t> take() {
    for (std::set<size_t>& ready : ready_) {
      if (ready.empty()) continue;
      const size_t taken = *ready.begin();
      ready.erase(ready.begin());
      for (size_t user : users_[taken]) {
        if (--missing_[user] == 0) ready_[urgency(ops_[user])].insert(user);
      }
      return taken;
    }
    return std::nullopt;
  }

 private:
  const std::vector<Operation>& ops_;
  std::vector<size_t> missing_;
  std::vector<std::vector<size_t>> users_;
  std::array<std::set<size_t>, 3> ready_;  // by urgency
};

}  // namespace

bool writes_variable(const Operation& op) {
  return (op.traits() & kWritesVariable) != 0;
}

RunOrder::RunOrder(const Session::Request& request) : fed_(request.feeds.begin(), request.feeds.end()) {
  std::vector<Operation> targets;
  for (const Fetch::Target& fetch : request.fetches) {
    if (fetch.is_operation() || !is_fed(fetch.output())) targets.push_back(fetch.op);
  }
  needed_ = needed_operations(targets, request.feeds);
  std::sort(needed_.begin(), needed_.end(), [](const Operation& a, const Operation& b) { return a.id() < b.id(); });
  if (request.options.snapshot) check_snapshot();
  is_part_ = std::any_of(needed_.begin(), needed_.end(),
                         [](const Operation& op) { return op.find_attr<bool>(kAfterWriteAttr) != nullptr; });
  find_what_follows_writes();
}

void RunOrder::check_snapshot() const {
  const auto write = std::find_if(needed_.begin(), needed_.end(), writes_variable);
  if (write == needed_.end()) return;
  throw InvalidArgumentError(fmt::format(
      "a snapshot run must not write variables, but {} ({}) does. Use a separate run for the values to read",
      write->name(), write->type()));
}

bool RunOrder::depends_on_any_of(const Operation& op, const OperationSet& set) const {
  for (const Output& input : op.inputs()) {
    if (!is_fed(input) && set.contains(input.op())) return true;
  }
  return std::any_of(op.control_inputs().begin(), op.control_inputs().end(),
                     [&](const Operation& control) { return set.contains(control); });
}

void RunOrder::find_what_follows_writes() {
  OperationSet write_or_after;
  for (const Operation& op : needed_) {
    const bool* of_whole_run = op.find_attr<bool>(kAfterWriteAttr);
    const bool after = of_whole_run != nullptr ? *of_whole_run : depends_on_any_of(op, write_or_after);
    if (after) after_write_.insert(op);
    if (after || writes_variable(op)) write_or_after.insert(op);
  }
}

// First what no write precedes; then, as long as there are writes to come, writes where they are ready and else the
// first operation that is; then the rest. Graphs are built in an order of dependencies, so order of creation is one to
// fall back on.
std::vector<Operation> RunOrder::ordered() const {
  if (is_part_) return needed_;
  std::vector<Operation> order, rest;
  for (const Operation& op : needed_) {
    (depends_on_write(op) || writes_variable(op) ? rest : order).push_back(op);
  }
  Waiting waiting(rest, *this);
  while (const std::optional<size_t> next = waiting.take()) order.push_back(rest[*next]);
  return order;
}

}  // namespace longhaul
