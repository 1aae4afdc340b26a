#include "longhaul/train/queue_fill.h"

#include "longhaul/ops/summary_ops.h"

namespace longhaul {

void add_fill_summary(const Scope& scope, const QueueBase& queue, const std::string& name, int64_t above,
                      int64_t range) {
  const Output fraction =
      scope.add("FractionFull", "fraction", {queue.size(scope)}, {{"above", above}, {"range", range}}).output();
  summary::scalar(scope, name, fraction);
}

}  // namespace longhaul
