#include "longhaul/console/trainings/run_listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/table.h"
#include "longhaul/console/text/times.h"
#include "longhaul/console/trainings/training_records.h"
#include "longhaul/console/trainings/unsaved_work.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul::console {
namespace {

using End = PastRun::End;
using Chief = ChiefRecord::State;

// How it ended, as far as the journal and the chief tell. `chief`: the run's; an older run has none any more.
std::string end_of(const PastRun& run, Chief chief) {
  if (run.end == End::kOpen) return chief == Chief::kAlive ? "running" : chief == Chief::kSilent ? "silent" : "killed";
  return std::string(name_of_end(run.end));
}

// "2 hangs"; empty: none.
std::string count_text(int64_t count, const char* what) {
  return count == 0 ? "" : fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string end_text(const PastRun& run, Chief chief) {
  std::string remarks = count_text(run.hangs, "hang");
  const std::string failed = count_text(run.failed_saves.in_all, "failed save");
  if (!remarks.empty() && !failed.empty()) remarks += ", ";
  remarks += failed;
  const std::string end = end_of(run, chief) + (remarks.empty() ? "" : " (" + remarks + ")");
  return run.why.empty() ? end : fmt::format("{}: {}", end, run.why);
}

Paint paint_of(const PastRun& run, Chief chief) {
  if (run.end == End::kOpen && chief == Chief::kAlive) return Paint::kGreen;
  return run.end == End::kEnded ? Paint::kPlain : Paint::kRed;
}

std::string step_text(const std::optional<int64_t>& step) {
  return step ? std::to_string(*step) : "?";
}

std::string steps_text(const PastRun& run) {
  if (!run.from_step && !run.last_step) return "";
  return fmt::format("{} to {}", step_text(run.from_step), step_text(run.last_step));
}

// The steps that the next run had to make again; nullopt: not known, or none.
std::optional<int64_t> lost_steps(const PastRun& run, const PastRun* next) {
  if (next == nullptr || !next->from_step || !run.last_step || *next->from_step >= *run.last_step) return {};
  return *run.last_step - *next->from_step;
}

Json to_json(const PastRun& run, const PastRun* next, Chief chief) {
  return {{"run", run.number},
          {"began", run.began},
          {"until", run.until},
          {"end", end_of(run, chief)},
          {"why", run.why},
          {"host", run.host},
          {"from_step", json_or_null(run.from_step)},
          {"last_step", json_or_null(run.last_step)},
          {"saved_step", json_or_null(run.saved_step)},
          {"saves", run.saves},
          {"lost_sessions", run.lost_sessions},
          {"hangs", run.hangs},
          {"failed_saves", run.failed_saves.in_all},
          {"lost_steps", json_or_null(lost_steps(run, next))}};
}

Json to_json(const TimeBreakdown& time) {
  return {{"training", time.training.count()},
          {"redone", time.redone.count()},
          {"saving", time.saving.count()},
          {"restoring", time.restoring.count()},
          {"initialising", time.initialising.count()},
          {"stopped", time.stopped.count()}};
}

// The newest at the end.
void add_rollbacks(Report& report, const JournalRecord& journal, double now) {
  constexpr size_t kMost = 10;
  const std::vector<Rollback>& rollbacks = journal.history.rollbacks().all();
  Json& listed = report.json["rollbacks"] = Json::array();
  for (const Rollback& rollback : rollbacks) {
    listed.push_back({{"number", rollback.count},
                      {"diverged_step", rollback.diverged_step},
                      {"restored_step", rollback.restored_step},
                      {"checkpoint", rollback.checkpoint},
                      {"lost_steps", undone_steps(rollback)},
                      {"time", json_or_null(time_of(journal, rollback))}});
  }
  for (size_t i = rollbacks.size() - std::min(rollbacks.size(), kMost); i < rollbacks.size(); ++i)
    report.text += shown(rollback_text(journal, rollbacks[i], now), 1000) + "\n";
}

// The checkpoint that a restart takes first.
std::optional<ListedCheckpoint> checkpoint_to_restore(FileSystem& files, const std::string& directory) {
  for (ListedCheckpoint& one : checkpoints_in(files, directory)) {
    if (one.is_latest) return std::move(one);
  }
  return std::nullopt;
}

// It is over, and has not come to its end.
bool is_to_be_started_again(const PastRun& run, Chief chief) {
  return !may_train(chief) && (run.end != End::kEnded || run.is_preempted());
}

}  // namespace

Report list_runs(FileSystem& files, const RunListingOptions& options, double now, const Terminal& terminal) {
  JournalRecord journal = journal_of(files, options.directory);
  if (!journal.problem.empty()) throw DataLossError(journal.problem);
  if (!journal.is_there) {
    throw NotFoundError(fmt::format("{} has no journal ({}): no chief has trained there, or keep_journal is false",
                                    options.directory, journal_path(options.directory)));
  }
  const Chief chief = chief_of(files, options.directory, now).state;
  const std::vector<PastRun>& runs = journal.history.runs();
  const size_t first = runs.size() - std::min(runs.size(), options.last);
  Report report{.json = json_of("runs")};
  report.json["path"] = options.directory;
  Json& listed = report.json["runs"] = Json::array();
  Table table({{"run", Align::kRight},
               {"began"},
               {"lasted", Align::kRight},
               {"steps", Align::kRight},
               {"saves", Align::kRight},
               {"lost steps", Align::kRight},
               {"end"}});
  for (size_t i = first; i < runs.size(); ++i) {
    const PastRun* next = i + 1 < runs.size() ? &runs[i + 1] : nullptr;
    const Chief chief_of_run = next == nullptr ? chief : Chief::kNone;
    const auto lost = lost_steps(runs[i], next);
    const double until = chief_of_run == Chief::kAlive ? std::max(now, runs[i].until) : runs[i].until;
    table.add({std::to_string(runs[i].number), utc_text(runs[i].began), duration_text(Seconds{until - runs[i].began}),
               steps_text(runs[i]), std::to_string(runs[i].saves), lost ? std::to_string(*lost) : "",
               Cell(end_text(runs[i], chief_of_run), paint_of(runs[i], chief_of_run))});
    listed.push_back(to_json(runs[i], next, chief_of_run));
  }
  report.text = table.text(terminal);
  const int64_t all = journal.history.sums().runs;
  if (const auto unlisted = all - static_cast<int64_t>(runs.size() - first); unlisted > 0) {
    report.text += fmt::format("{} earlier run{} not listed\n", unlisted, unlisted == 1 ? " is" : "s are");
  }
  add_rollbacks(report, journal, now);
  const std::optional<ListedCheckpoint> checkpoint = checkpoint_to_restore(files, options.directory);
  const auto add = [&](const std::string& text, Paint paint) {
    report.text += painted(wrapped(shown(text, 1000), 0, terminal.columns), paint, terminal) + "\n";
  };
  if (const auto failing = failing_saves(journal, checkpoint, chief, now)) add(*failing, Paint::kRed);
  if (!runs.empty() && is_to_be_started_again(runs.back(), chief))
    add(what_follows(journal, checkpoint), Paint::kPlain);
  const TimeBreakdown& time = journal.history.breakdown();
  const Seconds lost = may_train(chief) ? Seconds{0} : std::min(time.training, journal.history.unsaved().time());
  report.text += fmt::format("{}; {} interruption{}{}\n", describe(time, all, lost),
                             journal.history.sums().interruptions, journal.history.sums().interruptions == 1 ? "" : "s",
                             may_train(chief) ? unsaved_text(journal, chief) : "");
  report.json["all_runs"] = all;
  report.json["interruptions"] = journal.history.sums().interruptions;
  report.json["seconds"] = to_json(journal.history.breakdown());
  report.json["goodput_percent"] = goodput_of(journal, chief);
  report.json["unsaved_seconds"] = journal.history.at_stake().time().count();
  report.json["failing_saves"] = failing_saves_json(journal);
  return report;
}

}  // namespace longhaul::console
