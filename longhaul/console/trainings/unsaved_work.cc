#include "longhaul/console/trainings/unsaved_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "longhaul/console/text/times.h"

namespace longhaul::console {
namespace {

constexpr double kLateCheckpointSecs = 600;  // at least
constexpr double kNoCheckpointSecs = 7200;   // of a run that has none, or so few that nobody knows the interval
constexpr double kLateFactor = 3;            // of the usual interval
constexpr double kAutoFactor = 2;            // of the interval that kAuto would choose by now
constexpr size_t kFewSaves = 3;

const PastRun* newest_run(const JournalRecord& journal) {
  const auto& runs = journal.history.runs();
  return runs.empty() ? nullptr : &runs.back();
}

// "steps 101 to 900 (12 min of training) are in no checkpoint"; empty: all are in one, as far as is known.
std::string unsaved_steps_text(const JournalRecord& journal, const std::optional<ListedCheckpoint>& checkpoint) {
  const std::optional<int64_t> now = journal.history.sums().step;
  std::optional<int64_t> saved = journal.history.unsaved().saved_step();
  if (checkpoint && checkpoint->step <= now) saved = std::max(saved, checkpoint->step);
  if (!now || !saved || *now <= *saved) return "";
  const std::string time = duration_text(journal.history.unsaved().time());
  if (*now == *saved + 1) return fmt::format("step {} ({} of training) is in no checkpoint", *now, time);
  return fmt::format("steps {} to {} ({} of training) are in no checkpoint", *saved + 1, *now, time);
}

// The times at which the newest run saved, since the journal was last replaced.
std::vector<double> saves_in(const std::vector<RunEvent>& events) {
  std::vector<double> times;
  for (const RunEvent& event : events) {
    if (event.kind == RunEvent::Kind::kSaved) times.push_back(event.time);
  }
  return times;
}

double median_interval(const std::vector<double>& times) {
  std::vector<double> intervals;
  for (size_t i = 1; i < times.size(); ++i) intervals.push_back(times[i] - times[i - 1]);
  std::nth_element(intervals.begin(), intervals.begin() + static_cast<ptrdiff_t>(intervals.size() / 2),
                   intervals.end());
  return intervals[intervals.size() / 2];
}

// When checkpoints came.
struct Rhythm {
  double last = 0;   // 0: this run has none
  double usual = 0;  // the time from one to the next
  double late = 0;   // so long after the last one something is wrong
};

// Intervals may grow: the first ones of a run that follows short runs double, and kAuto chooses a longer one when it
// has seen what a checkpoint costs.
Rhythm rhythm_of(const JournalRecord& journal, const PastRun& run, const std::optional<ListedCheckpoint>& checkpoint) {
  const std::vector<double> saves = saves_in(journal.events);
  Rhythm rhythm{.last = saves.empty() ? 0 : saves.back()};
  // One that the journal does not know was saved when it could not be written.
  if (checkpoint && checkpoint->modified_at > run.began) rhythm.last = std::max(rhythm.last, checkpoint->modified_at);
  if (rhythm.last == 0) return {.late = kNoCheckpointSecs};
  const double best = best_save_interval(journal.history).count();
  if (saves.size() >= kFewSaves) {
    rhythm.usual = median_interval(saves);
    const double newest = saves[saves.size() - 1] - saves[saves.size() - 2];
    rhythm.late = std::max({kLateCheckpointSecs, kLateFactor * rhythm.usual, kLateFactor * newest, kAutoFactor * best});
  } else {
    rhythm.usual = (rhythm.last - run.began) / static_cast<double>(std::max<int64_t>(run.saves, 1));
    rhythm.late = std::max({kNoCheckpointSecs, kLateFactor * rhythm.usual, kAutoFactor * best});
  }
  return rhythm;
}

}  // namespace

std::optional<std::string> failing_saves(const JournalRecord& journal,
                                         const std::optional<ListedCheckpoint>& checkpoint, bool is_alive, double now) {
  const PastRun* run = newest_run(journal);
  if (run == nullptr || run->failed_saves.in_a_row == 0) return std::nullopt;
  const FailedSaves& saves = run->failed_saves;
  const std::string what =
      saves.in_a_row == 1 ? "the last save has failed" : fmt::format("{} saves in a row have failed", saves.in_a_row);
  const std::string since = saves.in_a_row == 1
                                ? utc_text(saves.since) + ", " + age_text(saves.since, now)
                                : fmt::format("the first {}, {}", utc_text(saves.since), age_text(saves.since, now));
  std::string steps = unsaved_steps_text(journal, checkpoint);
  if (!steps.empty()) steps = "; " + steps;
  const std::string remedy =
      is_alive
          ? "training continues, and each save is tried again: remove the cause (if the disk is full, make room on "
            "it), and do not end the process before one has worked"
          : "remove the cause (if the disk is full, make room on it) before you start it again";
  return fmt::format("{}: {} ({}){}; {}", what, saves.error, since, steps, remedy);
}

Json failing_saves_json(const JournalRecord& journal) {
  const PastRun* run = newest_run(journal);
  if (run == nullptr || run->failed_saves.in_a_row == 0) return Json();
  return {
      {"in_a_row", run->failed_saves.in_a_row}, {"since", run->failed_saves.since}, {"error", run->failed_saves.error}};
}

std::optional<std::string> missing_checkpoint(const JournalRecord& journal,
                                              const std::optional<ListedCheckpoint>& checkpoint, double now) {
  const PastRun* run = newest_run(journal);
  if (run == nullptr) return std::nullopt;
  const Rhythm rhythm = rhythm_of(journal, *run, checkpoint);
  const double last = rhythm.last > 0 ? rhythm.last : run->began;
  if (now - last <= rhythm.late) return std::nullopt;
  if (rhythm.last > 0) {
    return fmt::format(
        "the last checkpoint is {} old, though they used to come every {}: look for failed saves in the log, since a "
        "full disk may keep them out of the journal",
        duration_text(Seconds{now - last}), duration_text(Seconds{rhythm.usual}));
  }
  return fmt::format("this run has saved nothing in {}: a kill loses all of it", duration_text(Seconds{now - last}));
}

double goodput_of(const JournalRecord& journal, bool is_alive) {
  TimeBreakdown time = journal.history.breakdown();
  if (is_alive || time.total() <= Seconds{0}) return time.goodput();
  const Seconds lost = std::min(time.training, journal.history.unsaved().time());
  return 100 * ((time.training - lost) / time.total());
}

std::string unsaved_text(const JournalRecord& journal, bool is_alive) {
  const Seconds time = journal.history.unsaved().time();
  if (time < Seconds{1}) return "";
  return is_alive ? fmt::format("; {} of training in no checkpoint yet", duration_text(time))
                  : fmt::format("; {} of training was in no checkpoint", duration_text(time));
}

}  // namespace longhaul::console
