#include "longhaul/train/journal/first_interval.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/save_interval.h"

namespace longhaul {
namespace {

std::string what_runs_did(const ShortRuns& runs, const std::string& option) {
  if (runs.count() == 0) {
    const std::string shortest = fmt::format("{:.0f} s", runs.shortest().count());
    const std::string longest = fmt::format("{:.0f} s", runs.longest().count());
    return fmt::format("the previous runs lasted {}, and {}",
                       shortest == longest ? "about " + longest : shortest + " to " + longest, option);
  }
  return fmt::format(
      "the last {} runs began {} and ended before they saved a later checkpoint, so all their work was lost: {}, and "
      "the longest of them lasted {:.0f} s",
      runs.count(), runs.step() ? fmt::format("at step {}", *runs.step()) : "at the same checkpoint", option,
      runs.longest().count());
}

// They lasted long enough: then it is their saves that failed.
bool had_time_to_save(const ShortRuns& runs, const SaveOption& option) {
  return runs.count() > 0 && option.seconds && runs.longest() > *option.seconds;
}

}  // namespace

std::optional<Seconds> interval_after_short_runs(const RunJournal* journal, const SaveOption& option) {
  if (journal == nullptr) return std::nullopt;
  const ShortRuns runs = journal->history().sums().short_runs;
  if (!runs.are_a_pattern()) return std::nullopt;
  const Seconds early = std::max(kShortestFirstInterval, runs.middle());
  const Seconds first = option.seconds ? std::min(early, *option.seconds) : early;
  const bool is_as_usual = first == option.seconds;
  if (is_as_usual && runs.count() == 0) return std::nullopt;
  log_warning(
      "{}. The first checkpoint of this run is due after {:.0f} s. {}", what_runs_did(runs, option.text), first.count(),
      had_time_to_save(runs, option) ? "If their interval was that short, look for failed saves in their logs"
                                     : "Choose an interval much shorter than a run, or find out what ends the runs");
  return first;
}

std::optional<Seconds> next_interval_after_short_runs(Seconds interval, std::optional<Seconds> usual) {
  const Seconds next = 2 * interval;
  return next < usual.value_or(kLongestAutoInterval) ? std::optional(next) : std::nullopt;
}

}  // namespace longhaul
