#pragma once

#include <unordered_set>
#include <vector>

#include "longhaul/session/session.h"

namespace longhaul {

// Whether the operation changes a variable (kWritesVariable).
bool writes_variable(const Operation& op);

// On each node of a part of a run (placement/part_graph.h): whether it comes after a write of the run, on any task.
// Such a graph's order of creation is the order in which it runs.
inline constexpr char kAfterWriteAttr[] = "_after_write";

// The operations that a request needs, and the order that follows from its feeds and its writes:
//
//   what no write precedes -> writes, and what they need of other writes -> what follows writes
//
// So a run reads its variables before it changes them. Immutable.
class RunOrder {
 public:
  // InvalidArgumentError: a snapshot writes variables.
  explicit RunOrder(const Session::Request& request);

  const std::vector<Operation>& operations() const { return needed_; }  // in order of creation
  // In the order in which they run.
  std::vector<Operation> ordered() const;

  bool is_fed(const Output& output) const { return fed_.contains(output); }
  bool depends_on_write(const Operation& op) const { return after_write_.contains(op); }

 private:
  using OperationSet = std::unordered_set<Operation, OperationHash>;

  void check_snapshot() const;
  bool depends_on_any_of(const Operation& op, const OperationSet& set) const;
  void find_what_follows_writes();

  std::unordered_set<Output, OutputHash> fed_;
  std::vector<Operation> needed_;  // the order of creation respects dependencies
  OperationSet after_write_;
  bool is_part_ = false;
};

}  // namespace longhaul
