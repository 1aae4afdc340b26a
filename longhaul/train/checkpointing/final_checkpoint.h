#pragma once

#include "longhaul/train/checkpointing/save_once.h"
#include "longhaul/train/signals/stop_budget.h"

namespace longhaul {

// Takes the final checkpoint by save_last(), after waiting for a save under way on another thread. If a preemption
// limits the time, even one that began during that wait, and the rest of the grace period is shorter than the saver's
// last save, the checkpoint is skipped, and the log says which steps are lost. If the duration of the last save is not
// known, the save is attempted. Failed attempts are repeated only until the end of the grace period, even if that
// begins between two attempts.
//
// Returns whether the last step is saved. Throws what save_last() throws.
bool save_final_checkpoint(const SaveTarget& target, Session& session, const StopBudget& budget);

}  // namespace longhaul
