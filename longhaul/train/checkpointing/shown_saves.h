#pragma once

#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/reporting/progress.h"

namespace longhaul {

// The line with the age of the last checkpoint of this run, and how many saves have failed since. `now`: in seconds
// since 1970.
ProgressLine with_saves(ProgressLine line, const SaveStatus& saves, double now);

}  // namespace longhaul
