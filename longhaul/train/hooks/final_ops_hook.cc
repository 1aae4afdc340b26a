#include "longhaul/train/hooks/final_ops_hook.h"

#include "longhaul/base/log.h"

namespace longhaul {

void FinalOpsHook::end(Session& session) {
  try {
    values_ = session.run(final_ops_, feeds_);
  } catch (const OutOfRangeError&) {
    log_warning(
        "FinalOpsHook: the input ended while the final operations ran, so they depend on an input source. They should "
        "only read variables, such as the totals of a metric that the steps have updated.");
    throw;
  }
}

}  // namespace longhaul
