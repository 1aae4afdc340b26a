#pragma once

#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

class RunJournal;

// A program's setting for when checkpoints are due.
struct SaveOption {
  std::string text;                // "save_model_secs is 600"
  std::optional<Seconds> seconds;  // nullopt: the setting is in steps
};

// The time after which the first checkpoint is due in a run that was restored or initialised now, if the runs before it
// all ended before they had saved (ShortRuns): the time by which the shortest of them had made half of its steps. Logs
// a warning about them. nullopt: the option's interval applies, also if it is not longer. `journal` may be null.
std::optional<Seconds> interval_after_short_runs(const RunJournal* journal, const SaveOption& option);

// The interval after the checkpoint that was due after `interval`: twice as long, so that any run keeps about half of
// its work, until it reaches the option's interval, `usual`; then nullopt. `usual` is nullopt for an option in steps:
// then it grows up to an hour.
std::optional<Seconds> next_interval_after_short_runs(Seconds interval, std::optional<Seconds> usual);

}  // namespace longhaul
