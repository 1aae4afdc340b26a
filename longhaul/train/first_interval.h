#pragma once

#include <optional>
#include <string>

#include "longhaul/train/run_journal.h"

namespace longhaul {

// What a program says of when checkpoints are due.
struct SaveOption {
  std::string text;                // "save_model_secs is 600"
  std::optional<Seconds> seconds;  // nullopt: it says it in steps
};

// After how much time the first checkpoint of a run is due that was restored or initialised now, if the runs before it
// all ended before they had saved (ShortRuns): when the shortest of them had made half of its steps. It warns of them.
// nullopt: when the option says. `journal` may be null.
std::optional<Seconds> interval_after_short_runs(const RunJournal* journal, const SaveOption& option);

}  // namespace longhaul
