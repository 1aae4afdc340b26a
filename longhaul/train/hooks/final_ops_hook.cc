#include "longhaul/train/hooks/final_ops_hook.h"

#include "longhaul/base/log.h"

namespace longhaul {

void FinalOpsHook::end(Session& session) {
  try {
    values_ = session.run(final_ops_, feeds_);
  } catch (const OutOfRangeError&) {
    log_warning(
        "FinalOpsHook: the input ended in what is run at the end, so it has a dependency back to some input source. It "
        "should only read variables, such as the totals of a metric that the steps have updated.");
    throw;
  }
}

}  // namespace longhaul
