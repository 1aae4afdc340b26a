#pragma once

#include <unordered_set>
#include <vector>

#include "longhaul/runtime/aten/value.h"
#include "longhaul/session/session.h"

namespace longhaul {

// The operations that a request needs, and how they relate to its feeds and to the writes. Immutable.
class NeededGraph {
 public:
  // InvalidArgumentError: the fetches cannot be computed from the feeds, or a snapshot writes variables.
  explicit NeededGraph(const Session::Request& request);

  const std::vector<Operation>& operations() const { return needed_; }  // in order of creation
  // In the order in which they run: first what no write precedes.
  std::vector<Operation> ordered() const;

  bool is_fed(const Output& output) const { return fed_.contains(output); }
  bool depends_on_write(const Operation& op) const { return after_write_.contains(op); }
  // What goes from one operation without libtorch to the next, or to a fetch, is left as it is.
  ValuePlace place_of(const Output& output) const {
    return for_libtorch_.contains(output) ? ValuePlace::kLibtorch : ValuePlace::kHost;
  }

 private:
  using OperationSet = std::unordered_set<Operation, OperationHash>;

  bool depends_on_any_of(const Operation& op, const OperationSet& set) const;
  void find_what_follows_writes();
  void check_snapshot() const;

  std::unordered_set<Output, OutputHash> fed_;
  std::vector<Operation> needed_;  // the order of creation respects dependencies
  OperationSet after_write_;
  std::unordered_set<Output, OutputHash> for_libtorch_;  // values taken by libtorch operations
};

}  // namespace longhaul
