#include "longhaul/train/preemption_service.h"

namespace longhaul {

void PreemptionService::run_loop() {
  is_wanted_ |= preemption_.take_save_request();
  if (is_wanted_ && context_->saves->time_to_retry() <= Seconds{0}) is_wanted_ = !save_checkpoint(*context_);
}

}  // namespace longhaul
