#include "longhaul/console/trainings/training_status.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/size_text.h"
#include "longhaul/console/text/plot.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/text/times.h"
#include "longhaul/console/trainings/unsaved_work.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul::console {
namespace {

using Kind = RunEvent::Kind;
using Phase = RunHistory::Phase;

constexpr double kRateSecs = 60;       // over which the rate is taken
constexpr double kSilenceSecs = 60;    // of a journal that has a mark every five seconds
constexpr double kNoStepSecs = 300;    // with the same step
constexpr double kRestartSecs = 600;   // until a preempted training runs again
constexpr double kClockSlackSecs = 1;  // a run's times are by a monotonic clock, its chief's are not

bool tells_progress(const RunEvent& event) {
  return event.step &&
         (event.kind == Kind::kTraining || event.kind == Kind::kMark || event.kind == Kind::kStopRequested);
}

std::optional<double> rate_of(const std::vector<RunEvent>& events) {
  const RunEvent* last = nullptr;
  const RunEvent* first = nullptr;
  for (auto it = events.rbegin(); it != events.rend(); ++it) {
    if (it->kind == Kind::kRestored || it->kind == Kind::kInitialised || it->kind == Kind::kInterrupted) break;
    if (!tells_progress(*it)) continue;
    if (last == nullptr) last = &*it;
    first = &*it;
    if (last->time - first->time >= kRateSecs) break;
  }
  if (first == nullptr || last->time <= first->time) return std::nullopt;
  return static_cast<double>(*last->step - *first->step) / (last->time - first->time);
}

// Since when the journal has had the same step.
double same_step_since(const std::vector<RunEvent>& events) {
  double since = 0;
  std::optional<int64_t> step;
  for (const RunEvent& event : events) {
    if (!tells_progress(event) || event.step == step) continue;
    step = event.step;
    since = event.time;
  }
  return since;
}

// What the journal says of a hang since the last step; nullptr: nothing.
const RunEvent* hang_in(const std::vector<RunEvent>& events) {
  const RunEvent* hang = nullptr;
  std::optional<int64_t> step;
  for (const RunEvent& event : events) {
    if (event.kind == Kind::kHung) hang = &event;
    if (!tells_progress(event) || event.step == step) continue;
    step = event.step;
    hang = nullptr;
  }
  return hang;
}

std::string name_of(Phase phase) {
  switch (phase) {
    case Phase::kStarting: return "starting";
    case Phase::kRestoring: return "restoring";
    case Phase::kTraining: return "training";
    case Phase::kStopping: return "stopping";
    case Phase::kStopped: return "running";
  }
  return "running";
}

class Examination {
 public:
  Examination(FileSystem& files, const std::string& directory, double now)
      : files_(files), now_(now), status_{.directory = directory} {}

  TrainingStatus take() {
    status_.chief = chief_of(files_, status_.directory, now_);
    status_.journal = journal_of(files_, status_.directory);
    for (const std::string& problem : {status_.chief.problem, status_.journal.problem}) {
      if (!problem.empty()) complain(problem);
    }
    look_at_checkpoints();
    status_.steps_per_sec = rate_of(status_.journal.events);
    find_step();
    name_state();
    judge_chief();
    judge_runs();
    judge_saves();
    judge_progress();
    judge_disk();
    return std::move(status_);
  }

 private:
  using ChiefState = ChiefRecord::State;

  void complain(std::string problem) { status_.problems.push_back(std::move(problem)); }
  const PastRun* newest_run() const {
    const auto& runs = status_.journal.history.runs();
    return runs.empty() ? nullptr : &runs.back();
  }
  bool is_alive() const { return status_.chief.state == ChiefState::kAlive; }
  // The run's end is in the journal, though its process has left the owner record behind: a hang has ended it, say.
  bool has_ended_by_itself() const {
    const PastRun* run = newest_run();
    return run != nullptr && run->end != PastRun::End::kOpen && run->end != PastRun::End::kDied &&
           status_.chief.owner && run->began + kClockSlackSecs >= status_.chief.owner->since;
  }
  // The newest moment by the chief's clock.
  double chief_now() const {
    const bool is_here = status_.chief.owner && state_of(status_.chief.owner->process) != ProcessState::kUnknown;
    if (is_here || !status_.chief.owner) return now_;
    const double silence = status_.chief.state == ChiefState::kSilent ? now_ - status_.chief.heartbeat_at : 0;
    return status_.chief.owner->heartbeat + silence;
  }

  void look_at_checkpoints() {
    size_t set_aside = 0;
    for (const ListedCheckpoint& one : checkpoints_in(files_, status_.directory)) {
      if (one.is_latest) status_.checkpoint = one;
      if (one.state == ListedCheckpoint::State::kComplete) ++whole_checkpoints_;
      if (one.state == ListedCheckpoint::State::kSetAside) ++set_aside;
      if (one.state == ListedCheckpoint::State::kDamaged) {
        complain(
            fmt::format("checkpoint {} is damaged, and a restart skips it: {}", base_name(one.prefix), one.damage));
      }
      if (one.state != ListedCheckpoint::State::kLacksData) continue;
      complain(
          fmt::format("checkpoint {} lacks data files: it is damaged, and a restart skips it", base_name(one.prefix)));
    }
    if (const auto elsewhere = latest_elsewhere(files_, status_.directory)) {
      complain(
          fmt::format("a restart takes {}, which is not in this directory: its state file names it, as that of a "
                      "copy does that lacks files; copy them, or remove the state file",
                      *elsewhere));
    }
    if (set_aside > 0) {
      status_.notes.push_back(
          fmt::format("{} damaged checkpoint{} set aside as .corrupt", set_aside, set_aside == 1 ? " is" : "s are"));
    }
  }

  void find_step() {
    status_.step = status_.journal.history.sums().step;
    if (!status_.step && status_.checkpoint) status_.step = status_.checkpoint->step;
  }

  void name_state() {
    const PastRun* run = newest_run();
    switch (status_.chief.state) {
      case ChiefState::kAlive:
        status_.state = status_.chief.is_held ? "stopped" : name_of(status_.journal.history.sums().phase);
        return;
      case ChiefState::kSilent: status_.state = "silent"; return;
      case ChiefState::kDead: status_.state = has_ended_by_itself() ? name_of_end(run->end) : "killed"; break;
      case ChiefState::kNone:
        if (run != nullptr) status_.state = run->end == PastRun::End::kOpen ? "killed" : name_of_end(run->end);
        break;
    }
    if (run != nullptr && run->end == PastRun::End::kDied) status_.state = "died";
    if (!status_.state.empty()) return;
    const bool has_journal = status_.journal.is_there || !status_.journal.problem.empty();
    status_.state = status_.checkpoint || has_journal ? "not running" : kNoTraining;
    if (status_.state == kNoTraining) complain("there is no training here: no checkpoint, no journal, no chief");
  }

  std::string what_follows() const { return console::what_follows(status_.journal, status_.checkpoint); }

  void judge_chief() {
    if (status_.chief.is_held) {
      complain(fmt::format(
          "the chief, process {0} of {1}, is stopped by a signal (SIGSTOP), or a debugger holds it: it makes "
          "no step; `kill -CONT {0}` lets it go on",
          status_.chief.owner->process.pid, status_.chief.owner->process.host));
    }
    if (status_.chief.state == ChiefState::kDead && !has_ended_by_itself()) {
      complain(fmt::format("the chief, process {} of {}, is dead and did not end by itself; {}",
                           status_.chief.owner->process.pid, status_.chief.owner->process.host, what_follows()));
    } else if (status_.chief.state == ChiefState::kSilent) {
      complain(
          fmt::format("the chief, process {} of {}, has been silent for {} (its limit is {}): look whether that "
                      "machine, and the file system there, work; if it is dead, start it again: {}",
                      status_.chief.owner->process.pid, status_.chief.owner->process.host,
                      duration_text(Seconds{now_ - status_.chief.heartbeat_at}),
                      duration_text(Seconds{status_.chief.owner->limit}), next_start_text(status_.checkpoint)));
    }
  }

  // One that is over.
  void judge_newest(const PastRun& run) {
    using End = PastRun::End;
    if (run.end != End::kOpen && !may_train(status_.chief.state)) status_.ended_at = run.until;
    if (run.end == End::kFailed || run.end == End::kDisturbed || run.end == End::kDied) {
      const bool hung = hang_in(status_.journal.events) != nullptr;
      complain(fmt::format("run {} {}: {} ({}, {}){}; {}", run.number, name_of_end(run.end), run.why,
                           utc_text(run.until), age_text(run.until, now_),
                           hung ? "; its log and its events (longhaul/hang) have the stacks of all threads" : "",
                           what_follows()));
    }
    if (run.end == End::kOpen && status_.chief.state == ChiefState::kNone)
      complain(fmt::format("run {} has no end: it was killed; {}", run.number, what_follows()));
    if (run.end == End::kEnded && !run.why.empty()) status_.notes.push_back("it stopped: " + run.why);
    if (!run.is_preempted()) return;
    if (now_ - run.until > kRestartSecs) {
      complain(fmt::format("it was preempted {} ago and is not running; {}", duration_text(Seconds{now_ - run.until}),
                           what_follows()));
    } else {
      status_.notes.push_back(what_follows());
    }
  }

  void judge_runs() {
    const RunHistory& history = status_.journal.history;
    if (status_.journal.damaged_lines > 0) {
      status_.notes.push_back(
          fmt::format("{} damaged lines of the journal are skipped", status_.journal.damaged_lines));
    }
    if (const PastRun* run = newest_run(); run != nullptr && !is_alive()) judge_newest(*run);
    if (const auto& rollbacks = history.rollbacks().all(); !rollbacks.empty()) {
      status_.notes.push_back("the loss went bad: " + rollback_text(status_.journal, rollbacks.back(), now_) +
                              (is_alive() ? ", and it continues by itself" : ""));
    }
    for (const RunHistory::Crashes& crashes : history.sums().crashes) {
      complain(
          fmt::format("{} run{} restored from {} died before they saved another: after two, the next older one is "
                      "taken",
                      crashes.count, crashes.count == 1 ? "" : "s", crashes.checkpoint));
    }
    if (history.sums().short_runs.are_a_pattern()) {
      complain(
          fmt::format("the last runs ended before they had saved a later step than {}: save more often, or find "
                      "out what ends them",
                      history.sums().short_runs.step().value_or(0)));
    }
  }

  void judge_saves() {
    status_.failing_saves = failing_saves(status_.journal, status_.checkpoint, status_.chief.state, chief_now());
    if (status_.failing_saves) complain(*status_.failing_saves);
  }

  void judge_progress() {
    const RunHistory& history = status_.journal.history;
    if (status_.chief.is_held || !is_alive() || !status_.journal.is_there || history.sums().phase != Phase::kTraining)
      return;
    const double now = chief_now(), until = history.sums().until;
    if (now - until > kSilenceSecs) {
      complain(fmt::format("the journal has had no sign of life for {}: the process hangs, or cannot write here",
                           duration_text(Seconds{now - until})));
    }
    const double since = same_step_since(status_.journal.events);
    if (const RunEvent* hang = hang_in(status_.journal.events)) {
      complain(
          fmt::format("it hangs: at {} there was {}: its log and its events (longhaul/hang) have the stacks of all "
                      "threads",
                      utc_text(hang->time), hang->text));
    } else if (since > 0 && now - since > kNoStepSecs) {
      complain(fmt::format("no step has been made for {}: look at the program's log and stacks",
                           duration_text(Seconds{now - since})));
    }
    if (status_.failing_saves) return;
    if (auto missing = missing_checkpoint(status_.journal, status_.checkpoint, now)) complain(std::move(*missing));
  }

  // A prune needs the lock of the directory. By default it keeps as many as a training does.
  std::string how_to_make_room() const {
    if (is_alive()) {
      return "make room elsewhere on the disk; each save deletes old checkpoints if that is enough, and "
             "`longhaul prune` is refused while it trains";
    }
    if (status_.chief.state == ChiefState::kSilent) {
      return "make room elsewhere on the disk; do not prune this directory, unless the chief is dead: one that still "
             "trains loses the directory to `longhaul prune`, and with it what it has not saved";
    }
    if (whole_checkpoints_ < 2) return "make room elsewhere on the disk";
    return fmt::format(
        "make room elsewhere on the disk, or delete old ones: `longhaul prune {} --keep=1` shows which, and with "
        "`--delete` deletes them",
        status_.directory);
  }

  void judge_disk() {
    status_.free_bytes = files_.free_bytes(status_.directory);
    if (!status_.checkpoint) return;
    const uint64_t needed = status_.checkpoint->bytes + status_.checkpoint->bytes / 64 + 1'000'000;
    if (status_.free_bytes >= needed) return;
    complain(fmt::format("the disk has {} free, and the next checkpoint needs {}: {}", size_text(status_.free_bytes),
                         size_text(needed), how_to_make_room()));
  }

  FileSystem& files_;
  const double now_;
  TrainingStatus status_;
  size_t whole_checkpoints_ = 0;
};

bool is_alive(const TrainingStatus& status) {
  return status.chief.state == ChiefRecord::State::kAlive;
}

std::string step_text(const TrainingStatus& status) {
  if (!status.step) return "";
  const bool is_training = is_alive(status) && !status.chief.is_held && status.steps_per_sec;
  return std::to_string(*status.step) +
         (is_training ? fmt::format(", {} steps/s", number_text(*status.steps_per_sec)) : std::string());
}

std::string chief_text(const TrainingStatus& status, double now) {
  if (!status.chief.owner) return "none";
  const OwnerRecord& owner = *status.chief.owner;
  return fmt::format("host {}, process {}, since {}; last heartbeat {}", owner.process.host, owner.process.pid,
                     utc_text(owner.since), age_text(status.chief.heartbeat_at, now));
}

std::string checkpoint_text(const TrainingStatus& status, double now) {
  if (!status.checkpoint) return "none";
  return fmt::format("{}, {}, {}", base_name(status.checkpoint->prefix), age_text(status.checkpoint->modified_at, now),
                     size_text(status.checkpoint->bytes));
}

std::string goodput_text(const TrainingStatus& status) {
  const RunHistory& history = status.journal.history;
  if (!status.journal.is_there || history.breakdown().total() < Seconds{5}) return "";
  return fmt::format("{:.1f} % of {} in {} run{}, {} interruption{}{}", goodput_of(status.journal, status.chief.state),
                     duration_text(history.breakdown().total()), history.sums().runs,
                     history.sums().runs == 1 ? "" : "s", history.sums().interruptions,
                     history.sums().interruptions == 1 ? "" : "s", unsaved_text(status.journal, status.chief.state));
}

std::string disk_text(const TrainingStatus& status) {
  const std::string free = size_text(status.free_bytes) + " free";
  if (!status.checkpoint || status.checkpoint->bytes == 0) return free;
  const uint64_t count = status.free_bytes / status.checkpoint->bytes;
  return fmt::format("{}, room for {} checkpoint{}", free, count >= 1000 ? "1000 and more" : std::to_string(count),
                     count == 1 ? "" : "s");
}

std::string text_of(const TrainingStatus& status, double now, const Terminal& terminal) {
  constexpr size_t kIndent = 14;
  const Paint paint = !status.problems.empty() ? Paint::kRed : Paint::kGreen;
  std::string text = fmt::format("{}: {}\n", shown(status.directory, 1000), painted(status.state, paint, terminal));
  const auto add = [&](const char* label, const std::string& value, Paint with = Paint::kPlain) {
    if (value.empty()) return;
    const std::string lines = wrapped(shown(value, 1000), kIndent, terminal.columns);
    text += fmt::format("  {:<12}{}\n", label, painted(lines, with, terminal));
  };
  if (status.state != kNoTraining) {
    add("chief", chief_text(status, now));
    add("step", step_text(status));
    add("checkpoint", checkpoint_text(status, now));
    if (status.ended_at)
      add("ended", fmt::format("{}, {}", utc_text(*status.ended_at), age_text(*status.ended_at, now)));
    add("goodput", goodput_text(status));
    add("disk", disk_text(status));
  }
  for (const std::string& note : status.notes) add("note", note, Paint::kYellow);
  for (const std::string& problem : status.problems) add("wrong", problem, Paint::kRed);
  return text;
}

Json chief_json(const ChiefRecord& chief) {
  constexpr const char* kNames[] = {"none", "alive", "silent", "dead"};
  Json json = {{"state", kNames[static_cast<int>(chief.state)]}};
  if (!chief.owner) return json;
  json["held"] = chief.is_held;
  json["host"] = chief.owner->process.host;
  json["process"] = chief.owner->process.pid;
  json["since"] = chief.owner->since;
  json["heartbeat"] = chief.heartbeat_at;
  return json;
}

Json to_json(const TrainingStatus& status) {
  Json json = {{"path", status.directory}, {"state", status.state}, {"chief", chief_json(status.chief)}};
  json["step"] = json_or_null(status.step);
  json["steps_per_sec"] = json_or_null(status.steps_per_sec);
  json["checkpoint"] = Json();
  if (status.checkpoint) {
    json["checkpoint"] = {{"path", status.checkpoint->prefix},
                          {"step", json_or_null(status.checkpoint->step)},
                          {"modified_at", status.checkpoint->modified_at},
                          {"bytes", status.checkpoint->bytes}};
  }
  json["ended_at"] = json_or_null(status.ended_at);
  const RunHistory& history = status.journal.history;
  json["runs"] = history.sums().runs;
  json["interruptions"] = history.sums().interruptions;
  json["goodput_percent"] = status.journal.is_there ? Json(goodput_of(status.journal, status.chief.state)) : Json();
  json["unsaved_seconds"] = status.journal.is_there ? Json(history.at_stake().time().count()) : Json();
  json["failing_saves"] = failing_saves_json(status.journal);
  json["free_bytes"] = status.free_bytes;
  json["notes"] = status.notes;
  json["problems"] = status.problems;
  return json;
}

}  // namespace

TrainingStatus status_of(FileSystem& files, const std::string& directory, double now) {
  try {
    return Examination(files, directory, now).take();
  } catch (const Error& error) {
    return {.directory = directory, .state = "unreadable", .problems = {error.what()}};
  }
}

Report show_status(FileSystem& files, const std::vector<std::string>& directories, double now,
                   const Terminal& terminal) {
  Report report{.json = json_of("status")};
  report.json["now"] = now;
  Json& all = report.json["directories"] = Json::array();
  for (const std::string& directory : directories) {
    const TrainingStatus status = status_of(files, directory, now);
    report.is_fine = report.is_fine && status.problems.empty();
    report.text += text_of(status, now, terminal);
    all.push_back(to_json(status));
  }
  report.json["fine"] = report.is_fine;
  return report;
}

}  // namespace longhaul::console
