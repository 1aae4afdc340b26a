#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

const SessionRunArgs& SessionRunContext::original_args() const {
  if (feed_values_.empty()) return args_;
  if (!args_with_values_) {
    args_with_values_ = args_;
    for (size_t i = 0; i < feed_values_.size(); ++i) args_with_values_->feeds[i].second = *feed_values_[i];
  }
  return *args_with_values_;
}

}  // namespace longhaul
