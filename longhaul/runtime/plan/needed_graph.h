#pragma once

#include <unordered_set>
#include <vector>

#include "longhaul/runtime/aten/value.h"
#include "longhaul/session/run_order.h"

namespace longhaul {

// The operations that a request needs, and how they relate to its feeds and to the writes. Immutable.
class NeededGraph {
 public:
  // InvalidArgumentError: the fetches cannot be computed from the feeds, or a snapshot writes variables.
  explicit NeededGraph(const Session::Request& request);

  const std::vector<Operation>& operations() const { return order_.operations(); }  // in order of creation
  // In the order in which they run: first what no write precedes.
  std::vector<Operation> ordered() const { return order_.ordered(); }

  bool is_fed(const Output& output) const { return order_.is_fed(output); }
  bool depends_on_write(const Operation& op) const { return order_.depends_on_write(op); }
  // What goes from one operation without libtorch to the next, or to a fetch, is left as it is.
  ValuePlace place_of(const Output& output) const {
    return for_libtorch_.contains(output) ? ValuePlace::kLibtorch : ValuePlace::kHost;
  }

 private:
  const RunOrder order_;
  std::unordered_set<Output, OutputHash> for_libtorch_;  // values taken by libtorch operations
};

}  // namespace longhaul
