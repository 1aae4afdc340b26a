#include "longhaul/console/trainings/unsaved_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "longhaul/console/text/times.h"

namespace longhaul::console {
namespace {

constexpr double kLateCheckpointSecs = 600;  // at least
constexpr double kNoCheckpointSecs = 7200;   // of a run that has none, or so few that nobody knows the interval
constexpr double kLateFactor = 3;            // of the usual interval
constexpr double kAutoFactor = 2;            // of the interval that kAuto would choose by now
constexpr size_t kFewSaves = 3;
constexpr double kAtOnceSecs = 10;  // after the first step
constexpr double kNever = std::numeric_limits<double>::infinity();

using Chief = ChiefRecord::State;

const PastRun* newest_run(const JournalRecord& journal) {
  const auto& runs = journal.history.runs();
  return runs.empty() ? nullptr : &runs.back();
}

// When the newest run got its model; since when it began, if the journal was replaced later.
double recovered_at(const JournalRecord& journal, const PastRun& run) {
  double time = run.began;
  for (const RunEvent& event : journal.events) {
    if (event.kind == RunEvent::Kind::kRestored || event.kind == RunEvent::Kind::kInitialised) time = event.time;
  }
  return time;
}

// What the newest run saved, since the journal was last replaced.
struct Saves {
  std::vector<double> times{};
  bool has_first = false;  // that of its beginning, which ends no interval
};

bool is_no_later(const std::optional<int64_t>& step, const std::optional<int64_t>& than) {
  return step && than && *step <= *than;
}

// A new run saves at once: before its first step, or as soon as the saver finds it.
Saves saves_in(const std::vector<RunEvent>& events, const PastRun& run) {
  Saves saves;
  std::optional<double> first_step;
  for (const RunEvent& event : events) {
    if (event.kind == RunEvent::Kind::kTraining) first_step = first_step.value_or(event.time);
    if (event.kind != RunEvent::Kind::kSaved) continue;
    const bool is_at_once = is_no_later(event.step, run.from_step) ||
                            (first_step && event.time - event.lasted.count() <= *first_step + kAtOnceSecs);
    if (saves.times.empty()) saves.has_first = is_at_once;
    saves.times.push_back(event.time);
  }
  if (saves.times.empty()) saves.has_first = run.saves == 1;  // nobody knows when it was
  return saves;
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
  double late = 0;   // so long after the last one something is wrong; infinite: nobody knows
};

// Intervals may grow: the first ones of a run that follows short runs double, and kAuto chooses a longer one when it
// has seen what a checkpoint costs.
Rhythm rhythm_of(const JournalRecord& journal, const PastRun& run, const std::optional<ListedCheckpoint>& checkpoint,
                 double now) {
  const Saves all = saves_in(journal.events, run);
  const std::vector<double>& saves = all.times;
  Rhythm rhythm{.last = saves.empty() ? 0 : saves.back()};
  // One that the journal does not know was saved when it could not be written. The clock is that of the file server.
  const bool is_known = !checkpoint || is_no_later(checkpoint->step, std::max(run.saved_step, run.from_step));
  if (checkpoint && checkpoint->modified_at > run.began && (!is_known || saves.empty()))
    rhythm.last = std::max(rhythm.last, std::min(checkpoint->modified_at, now));
  if (rhythm.last == 0) return {.late = kNoCheckpointSecs};
  const double best = best_save_interval(journal.history).count();
  if (saves.size() >= kFewSaves) {
    rhythm.usual = median_interval(saves);
    const double newest = saves[saves.size() - 1] - saves[saves.size() - 2];
    rhythm.late = std::max({kLateCheckpointSecs, kLateFactor * rhythm.usual, kLateFactor * newest, kAutoFactor * best});
  } else {
    const int64_t intervals = run.saves + (is_known ? 0 : 1) - (all.has_first ? 1 : 0);
    if (intervals <= 0) return {.last = rhythm.last, .late = kNever};
    rhythm.usual = (rhythm.last - run.began) / static_cast<double>(intervals);
    rhythm.late = std::max({kNoCheckpointSecs, kLateFactor * rhythm.usual, kAutoFactor * best});
  }
  return rhythm;
}

const char* remedy_for(Chief chief) {
  switch (chief) {
    case Chief::kAlive:
      return "training continues, and each save is tried again: remove the cause (if the disk is full, make room on "
             "it), and do not end the process before one has worked";
    case Chief::kSilent:
      return "a full disk keeps its signs of life away, too: if the process still runs, do not end it, but remove the "
             "cause (if the disk is full, make room on it), and it saves what it has made";
    case Chief::kNone:
    case Chief::kDead: break;
  }
  return "remove the cause (if the disk is full, make room on it) before you start it again";
}

}  // namespace

std::string unsaved_steps_text(const JournalRecord& journal, const std::optional<ListedCheckpoint>& checkpoint) {
  const std::optional<int64_t> now = journal.history.sums().step;
  std::optional<int64_t> saved = journal.history.at_stake().saved_step();
  const PastRun* run = newest_run(journal);
  const bool is_newer = checkpoint && run != nullptr && checkpoint->modified_at > recovered_at(journal, *run);
  if (is_newer && checkpoint->step <= now) saved = std::max(saved, checkpoint->step);
  if (!now || !saved || *now <= *saved) return "";
  const std::string time = duration_text(journal.history.at_stake().time());
  if (*now == *saved + 1) return fmt::format("step {} ({} of training) is in no checkpoint", *now, time);
  return fmt::format("steps {} to {} ({} of training) are in no checkpoint", *saved + 1, *now, time);
}

std::string next_start_text(const std::optional<ListedCheckpoint>& checkpoint) {
  return checkpoint ? "it continues from " + base_name(checkpoint->prefix) : "it begins anew";
}

std::string what_follows(const JournalRecord& journal, const std::optional<ListedCheckpoint>& checkpoint) {
  const PastRun* run = newest_run(journal);
  if (run != nullptr && run->failed_saves.in_a_row > 0) return "once started again, " + next_start_text(checkpoint);
  const std::string lost = unsaved_steps_text(journal, checkpoint);
  return (lost.empty() ? "" : lost + "; ") + "start it again: " + next_start_text(checkpoint);
}

std::optional<double> time_of(const JournalRecord& journal, const Rollback& rollback) {
  const std::string text = Rollbacks::text_of(rollback, /*ends=*/false);
  for (const RunEvent& event : journal.events) {
    if (event.kind == RunEvent::Kind::kDiverged && event.text == text) return event.time;
  }
  return std::nullopt;
}

std::string rollback_text(const JournalRecord& journal, const Rollback& rollback, double now) {
  const auto time = time_of(journal, rollback);
  const int64_t lost = undone_steps(rollback);
  return fmt::format("{}{}: {} step{} lost", rollback.describe(),
                     time ? fmt::format(" ({}, {})", utc_text(*time), age_text(*time, now)) : "", lost,
                     lost == 1 ? " is" : "s are");
}

std::optional<std::string> failing_saves(const JournalRecord& journal,
                                         const std::optional<ListedCheckpoint>& checkpoint, Chief chief, double now) {
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
  return fmt::format("{}: {} ({}){}; {}", what, saves.error, since, steps, remedy_for(chief));
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
  const Rhythm rhythm = rhythm_of(journal, *run, checkpoint, now);
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

double goodput_of(const JournalRecord& journal, Chief chief) {
  TimeBreakdown time = journal.history.breakdown();
  if (may_train(chief) || time.total() <= Seconds{0}) return time.goodput();
  const Seconds lost = std::min(time.training, journal.history.unsaved().time());
  return 100 * ((time.training - lost) / time.total());
}

std::string unsaved_text(const JournalRecord& journal, Chief chief) {
  const Seconds time = journal.history.at_stake().time();
  if (time < Seconds{1}) return "";
  return may_train(chief) ? fmt::format("; {} of training in no checkpoint yet", duration_text(time))
                          : fmt::format("; {} of training was in no checkpoint", duration_text(time));
}

}  // namespace longhaul::console
