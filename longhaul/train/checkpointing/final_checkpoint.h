#pragma once

#include "longhaul/train/checkpointing/save_once.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

// The checkpoint at the end of a training, as save_last() takes it. Where a preemption limits the time, there is none
// if it does not fit what is left of the grace period, as long as the saver's last one took; not known how long that
// is, it is tried. The log says then which steps are lost. A save that is under way on another thread is waited for
// before that is asked. Attempts that fail are repeated no longer than the period lasts.
//
// Whether the last step is saved. Throws as save_last() does.
bool save_final_checkpoint(const SaveTarget& target, Session& session, const StopBudget& budget);

}  // namespace longhaul
