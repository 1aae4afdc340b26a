#include "longhaul/console/board/board_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/size_text.h"
#include "longhaul/console/board/board_limits.h"
#include "longhaul/console/trainings/training_records.h"
#include "longhaul/console/trainings/training_status.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul::console {
namespace {

constexpr int kLooksBetweenSearches = 5;
constexpr Seconds kBetweenStates{10};  // of a run: its checkpoints and its owner tell nobody that they have changed
constexpr Seconds kLongRead{20};       // then it is told, since a file server may hang

std::string reason_of(const PastRun& run) {
  const std::string end = run.end == PastRun::End::kOpen ? "killed" : std::string(name_of_end(run.end));
  return fmt::format("run {} {}{}{}", run.number, end, run.why.empty() ? "" : ": ", run.why);
}

std::vector<RestartMark> marks_of(const RunHistory& history) {
  std::vector<RestartMark> marks;
  const std::vector<PastRun>& runs = history.runs();
  for (size_t i = 1; i < runs.size(); ++i) {
    if (!runs[i].from_step) continue;
    marks.push_back({.step = *runs[i].from_step, .time = runs[i].began, .why = reason_of(runs[i - 1])});
  }
  for (const Rollback& each : history.rollbacks().all()) {
    marks.push_back({.step = each.restored_step,
                     .what = "went back",
                     .why = fmt::format("from step {}, where the loss went bad", each.diverged_step)});
  }
  if (marks.size() > kMostStarts) marks.erase(marks.begin(), marks.end() - static_cast<ptrdiff_t>(kMostStarts));
  return marks;
}

std::vector<std::string> a_few(std::vector<std::string> texts) {
  const size_t count = texts.size();
  if (count <= kMostProblems) return texts;
  texts.resize(kMostProblems);
  texts.push_back(fmt::format("and {} more", count - kMostProblems));
  return texts;
}

// nullopt: it is no training, as a directory of TensorFlow's event files.
std::optional<RunState> state_of(TrainingStatus status) {
  if (status.state == kNoTraining) return std::nullopt;
  return RunState{.state = std::move(status.state),
                  .problems = a_few(std::move(status.problems)),
                  .notes = a_few(std::move(status.notes))};
}

}  // namespace

void BoardRun::look(TagNames& tags, KeptMemory& kept, const std::function<bool()>& go_on) {
  try {
    if (!files_.is_directory(directory())) return complain("the directory is gone", true);
    look_at_training();
    look_at_journal();
    read_events(tags, kept, go_on);
    complain("", false);
  } catch (const NotFoundError&) {
    complain("the directory is gone", true);
  } catch (const std::exception& error) {  // no memory, too: the other runs are read all the same
    complain(error.what(), false);
  }
}

void BoardRun::complain(const std::string& problem, bool is_gone) {
  MutexLock lock(mutex_);
  problem_ = problem;
  is_gone_ = is_gone;
  if (is_gone) training_at_.reset();
}

void BoardRun::look_at_training() {
  const Seconds now = clock_.now();
  if (training_at_ && now - *training_at_ < kBetweenStates) return;
  training_at_ = now;
  auto state = state_of(status_of(files_, directory(), clock_.wall_time()));
  MutexLock lock(mutex_);
  state_ = std::move(state);
}

void BoardRun::look_at_journal() {
  double at = 0;
  try {
    at = files_.modified_at(journal_path(directory()));
  } catch (const NotFoundError&) {
    MutexLock lock(mutex_);
    journal_at_ = -1;
    has_journal_ = false;
    return marks_.clear();
  }
  if (at == journal_at_) return;
  JournalRecord journal = journal_of(files_, directory());
  MutexLock lock(mutex_);
  journal_at_ = at;
  has_journal_ = journal.is_there;
  marks_ = marks_of(journal.history);
}

// One that was removed and is back is another run, as one whose event files are others: what was read of the first one
// goes.
void BoardRun::read_events(TagNames& tags, KeptMemory& kept, const std::function<bool()>& go_on) {
  std::shared_ptr<RunEvents> events;
  {
    MutexLock lock(mutex_);
    if (is_gone_) events_.reset();
    events = events_;
  }
  if (events == nullptr) {
    events = std::make_shared<RunEvents>(files_, directory(), tags, kept);
    MutexLock lock(mutex_);
    events_ = events;
  }
  if (!events->read(go_on)) return;
  MutexLock lock(mutex_);
  events_.reset();
}

std::shared_ptr<RunEvents> BoardRun::events() const {
  MutexLock lock(mutex_);
  return events_;
}

std::vector<RestartMark> BoardRun::restarts() const {
  std::shared_ptr<RunEvents> events;
  {
    MutexLock lock(mutex_);
    if (has_journal_) return marks_;
    events = events_;
  }
  std::vector<RestartMark> marks;
  if (events == nullptr) return marks;
  for (const auto& [step, time] : events->starts()) {
    if (step > 0) marks.push_back({.step = step, .time = time});
  }
  return marks;
}

std::optional<RunState> BoardRun::state() const {
  MutexLock lock(mutex_);
  return is_gone_ ? std::nullopt : state_;
}

std::vector<std::string> BoardRun::problems() const {
  std::vector<std::string> all;
  std::shared_ptr<RunEvents> events;
  {
    MutexLock lock(mutex_);
    if (!problem_.empty()) all.push_back(problem_);
    events = events_;
  }
  if (events == nullptr) return all;
  for (std::string& each : events->problems()) all.push_back(std::move(each));
  return all;
}

bool BoardRun::is_gone() const {
  MutexLock lock(mutex_);
  return is_gone_;
}

void BoardRuns::look(const std::function<bool()>& go_on) {
  begin_to("look for runs");
  if (looks_++ % kLooksBetweenSearches == 0) find();
  for (const auto& run : all()) {
    begin_to("read " + run->name());
    do {
      if (!go_on()) return;
      run->look(tags_, kept_, go_on);
    } while (make_room());
  }
  begin_to("");
  has_looked_ = true;
}

void BoardRuns::begin_to(const std::string& what) {
  MutexLock lock(mutex_);
  doing_ = what;
  doing_since_ = clock_.now();
}

void BoardRuns::find() {
  FoundRuns found = find_runs(files_, directories_);
  MutexLock lock(mutex_);
  size_t left_out = 0;
  for (const FoundRun& each : found.runs) {
    const bool is_known =
        std::any_of(runs_.begin(), runs_.end(), [&](const auto& run) { return run->directory() == each.directory; });
    if (!is_known && !add(std::make_shared<BoardRun>(files_, each, clock_))) ++left_out;
  }
  notes_ = std::move(found.notes);
  if (left_out > 0) {
    notes_.push_back(fmt::format("{} new runs are left out: a board shows {} at most", left_out, kMostRuns));
  }
}

// Of so many runs one that is gone gives its place to a new one.
bool BoardRuns::add(std::shared_ptr<BoardRun> run) {
  if (runs_.size() < kMostRuns) {
    runs_.push_back(std::move(run));
    return true;
  }
  const auto gone = std::find_if(runs_.begin(), runs_.end(), [](const auto& each) { return each->is_gone(); });
  if (gone == runs_.end()) return false;
  *gone = std::move(run);
  return true;
}

// Returns whether something was to be done.
bool BoardRuns::make_room() {
  bool is_done = false;
  for (; kept_.is_full() && kept_.can_shorten(); is_done = true) {
    kept_.shorten();
    for (const auto& run : all()) {
      if (const auto events = run->events()) events->shorten();
    }
  }
  return is_done;
}

std::vector<std::shared_ptr<BoardRun>> BoardRuns::all() const {
  MutexLock lock(mutex_);
  return runs_;
}

std::vector<std::string> BoardRuns::notes() const {
  std::vector<std::string> all;
  {
    MutexLock lock(mutex_);
    all = notes_;
    const Seconds lasted = clock_.now() - doing_since_;
    if (!doing_.empty() && lasted > kLongRead) {
      all.push_back(
          fmt::format("to {} has taken {:.0f} s so far: nothing else is read meanwhile", doing_, lasted.count()));
    }
  }
  if (kept_.is_short()) {
    all.push_back(
        fmt::format("what the board keeps of all runs has reached {}: a curve has {} points at most now, or so "
                    "many images and the like",
                    size_text(kept_.most_bytes()), kept_.most_points()));
  }
  return all;
}

}  // namespace longhaul::console
