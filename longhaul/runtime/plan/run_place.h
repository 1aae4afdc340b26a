#pragma once

#include <atomic>

#include "longhaul/graph/operation.h"

namespace longhaul {

// Where a run is, for other threads that want to know: which of its plan's operations it began last. This costs the run
// one store for each operation.
class RunPlace {
 public:
  // The run's thread. Operations are those of the plan, as long as it lives.
  void enter(const Operation& op) { op_.store(&op, std::memory_order_relaxed); }
  void leave() { op_.store(nullptr, std::memory_order_relaxed); }

  // Any thread. Null: none yet, or it has left the last one.
  const Operation* now() const { return op_.load(std::memory_order_relaxed); }

 private:
  std::atomic<const Operation*> op_{nullptr};
};

}  // namespace longhaul
