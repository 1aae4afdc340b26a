#pragma once

#include "longhaul/train/checkpointing/save_once.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

// Takes the checkpoint at the end of training with save_last(). A save under way on another thread is waited for first.
// If a preemption limits the time, even one that came during that wait, the checkpoint is skipped when the rest of the
// grace period is shorter than the saver's last save took, and the log says which steps are lost; if that time is not
// known, the save is attempted. Failed attempts are repeated only until the end of the grace period, also of one that
// begins between two of them.
//
// Returns whether the last step is saved. Throws as save_last() does.
bool save_final_checkpoint(const SaveTarget& target, Session& session, const StopBudget& budget);

}  // namespace longhaul
