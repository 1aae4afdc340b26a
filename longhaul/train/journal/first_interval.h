#pragma once

#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

class RunJournal;

// What a program says of when checkpoints are due.
struct SaveOption {
  std::string text;                // "save_model_secs is 600"
  std::optional<Seconds> seconds;  // nullopt: it says it in steps
};

// After how much time the first checkpoint of a run is due that was restored or initialised now, if the runs before it
// all ended before they had saved (ShortRuns): when the shortest of them had made half of its steps. It warns of them.
// nullopt: when the option says, as also where that is as soon. `journal` may be null.
std::optional<Seconds> interval_after_short_runs(const RunJournal* journal, const SaveOption& option);

// After the checkpoint that was due after `interval`: twice as long, so that any run keeps about half of its work,
// until that is as long as the option says, `usual`; then nullopt. `usual` is nullopt where it says it in steps: then
// an hour is the end of it.
std::optional<Seconds> next_interval_after_short_runs(Seconds interval, std::optional<Seconds> usual);

}  // namespace longhaul
