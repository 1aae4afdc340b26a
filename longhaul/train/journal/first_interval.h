#pragma once

#include <optional>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

class RunJournal;

// A program's setting of the interval between checkpoints.
struct SaveOption {
  std::string text;                // "save_model_secs is 600"
  std::optional<Seconds> seconds;  // nullopt: the setting is in steps
};

// If all recent runs ended before they could save (ShortRuns), returns the time from now after which the first
// checkpoint is due: the time by which the shortest of these runs had made half of its steps. Logs a warning about
// them. nullopt: the option's interval applies, because there were no such runs or it is not longer. `journal` may be
// null.
std::optional<Seconds> interval_after_short_runs(const RunJournal* journal, const SaveOption& option);

// Returns the interval that follows `interval`: twice as long, so that any run keeps about half of its work. Once it
// reaches the option's interval, `usual`, returns nullopt. `usual` is nullopt for an option in steps; the interval then
// grows up to an hour.
std::optional<Seconds> next_interval_after_short_runs(Seconds interval, std::optional<Seconds> usual);

}  // namespace longhaul
