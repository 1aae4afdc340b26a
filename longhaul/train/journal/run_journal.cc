#include "longhaul/train/journal/run_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/io/process/process_identity.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;

constexpr uint64_t kMostBytesRead = 16 * 1024 * 1024;
constexpr int64_t kMostDeaths = 2;  // after a checkpoint, before it is skipped

constexpr const char* kNoStep =
    "; the global step was not seen to move in this run, so the time up to its end counts as initialising";

std::string process_text() {
  const ProcessIdentity process = this_process();
  return fmt::format("process {} started {} boot {} host {}", process.pid, process.start_time, process.boot_id,
                     process.host);
}

// Whether another start may do better with the same checkpoint.
bool is_of_surroundings(const std::exception_ptr& error) {
  switch (code_of(error)) {
    case Code::kCancelled:
    case Code::kDeadlineExceeded:
    case Code::kNotFound:
    case Code::kPermissionDenied:
    case Code::kResourceExhausted:
    case Code::kAborted:
    case Code::kUnavailable: return true;
    default: break;
  }
  try {
    std::rethrow_exception(error);
  } catch (const DirectoryLostError&) {
    return true;
  } catch (...) {
    return false;
  }
}

bool needs_disk(Kind kind) {
  return kind == Kind::kEnded || kind == Kind::kFailed || kind == Kind::kDisturbed;
}

// A disk on which saves fail may be slow or full, and a row of them long. That a row has ended does not wait.
bool may_wait(const RunEvent& event) {
  return event.kind == Kind::kSaveFailed && failed_in_a_row(event) > 0;
}

std::string crash_path(const std::string& directory) {
  return journal_path(directory) + ".crash";
}

void warn_of_directory(FileSystem& files, const std::string& directory) {
  for (const std::string& path : {journal_path(directory), crash_path(directory)}) {
    if (!files.is_directory(path)) continue;
    log_error(
        "{} is a directory, but the journal needs a file of this name: move it away. Until then the history of this "
        "training run is not recorded, and no checkpoint that crashes it is skipped",
        path);
  }
}

RunHistory read(FileSystem& files, const std::string& path) {
  try {
    ParsedJournal parsed = parse_run_journal(read_file(files, path, kMostBytesRead));
    if (parsed.damaged_lines > 0) log_warning("{}: {} damaged lines are skipped", path, parsed.damaged_lines);
    return parsed.history;
  } catch (const NotFoundError&) {
  } catch (const Error& error) {
    log_warning("the history of earlier runs is unknown, and a new journal begins: {}", error.what());
  }
  return {};
}

void look_for_crash(FileSystem& files, const std::string& directory, RunHistory& before) {
  const RunHistory::Sums& sums = before.sums();
  if (sums.phase == RunHistory::Phase::kStopped) return;
  const std::optional<int> signal = read_crash_record(files, crash_path(directory), sums.runs);
  if (!signal) return;
  const std::string what = fmt::format("signal {} ({})", *signal, strsignal(*signal));
  log_warning("{}: the previous run crashed with {}{}", directory, what,
              sums.restored.empty() ? "" : fmt::format("; it had been restored from {}", sums.restored));
  before.apply({.kind = Kind::kDied, .time = sums.until, .text = what});
}

// The checkpoint that somebody has named in the state file since the run before; empty: nobody has. A saver writes that
// file before it tells the journal of its save. Both times are of the file system's clock.
std::string chosen_by_hand(FileSystem& files, const std::string& directory) {
  try {
    const double noted_at = files.modified_at(journal_path(directory));
    if (files.modified_at(join_path(directory, kDefaultStateFile)) <= noted_at) return "";
    return base_name(read_checkpoint_state(files, directory).state.model_checkpoint_path);
  } catch (const Error& error) {
    log_debug("{} has no state file newer than its journal: {}", directory, error.what());
    return "";
  }
}

// nullptr: there can be none. For files that are the system's: the handler of signals knows no others.
std::unique_ptr<CrashRecord> open_crash_record(const std::string& directory, int64_t run) {
  if (!FileSystem::real().exists(journal_path(directory))) return nullptr;
  try {
    return std::make_unique<CrashRecord>(crash_path(directory), run);
  } catch (const Error& error) {
    log_warning("{}: if this run crashes, the next one will mistake that for a kill from outside: {}", directory,
                error.what());
    return nullptr;
  }
}

}  // namespace

std::string journal_path(const std::string& directory) {
  return join_path(directory, "run.journal");
}

void RunJournal::begin() {
  crash_record_.reset();
  FileSystem& files = *options_.files;
  warn_of_directory(files, directory_);
  RunHistory before = read(files, path_);
  look_for_crash(files, directory_, before);
  std::string chosen = chosen_by_hand(files, directory_);
  {
    MutexLock lock(mutex_);
    history_ = std::move(before);
    before_ = history_.breakdown();
    has_trained_ = false;
    chosen_ = std::move(chosen);
    began_ = options_.clock->now();
    began_wall_ = std::max(0.0, options_.clock->wall_time());
    is_open_ = true;
    is_restoring_ = false;
    kept_line_.clear();
    turns_.begin();
  }
  write_noted();
  note({.kind = Kind::kBegan, .text = process_text()});
  crash_record_ = open_crash_record(directory_, history().sums().runs);
}

bool RunJournal::has_reason_to_skip(const std::string& checkpoint, int64_t deaths) const {
  if (!options_.skip_crashing_checkpoints || deaths < kMostDeaths) return false;
  MutexLock lock(mutex_);
  return checkpoint != chosen_;
}

// What was saved while the loss was bad is not there by the choice of a person, even if the journal's last event is
// older than the state file.
RunJournal::Fitness RunJournal::fitness(const std::string& checkpoint) const {
  MutexLock lock(mutex_);
  const Rollbacks& rollbacks = history_.rollbacks();
  const std::optional<int64_t> step = split_step(checkpoint).step;
  if (rollbacks.undone_after() && step > *rollbacks.undone_after()) return Fitness::kUndone;
  return checkpoint != chosen_ && rollbacks.is_unfit(checkpoint) ? Fitness::kUnfit : Fitness::kFit;
}

bool RunJournal::is_skipped(const std::string& prefix) const {
  const std::string name = base_name(prefix);
  return fitness(name) != Fitness::kFit || has_reason_to_skip(name, history().deaths_after(name));
}

bool RunJournal::is_undone(const std::string& prefix) const {
  return fitness(base_name(prefix)) != Fitness::kFit;
}

std::optional<std::string> RunJournal::skip_reason(const std::string& prefix) {
  if (const Fitness fit = fitness(base_name(prefix)); fit != Fitness::kFit) {
    if (fit == Fitness::kUndone) note({.kind = Kind::kRefused, .text = base_name(prefix)});
    return fmt::format(
        "it was taken after the loss of the training went bad, or shortly before, according to {}; it is kept until a "
        "checkpoint of a later step is saved",
        path_);
  }
  const int64_t deaths = history().deaths_after(base_name(prefix));
  if (has_reason_to_skip(base_name(prefix), deaths)) {
    return fmt::format(
        "{} runs restored from it failed with an error or a crash of their own before they saved another one, "
        "according to {}; it is kept until a checkpoint of a later step is saved; to try it again, name it in the file "
        "{}, or set skip_crashing_checkpoints to false",
        deaths, path_, kDefaultStateFile);
  }
  bool is_first;
  {
    MutexLock lock(mutex_);
    is_first = is_open_ && !std::exchange(is_restoring_, true);
  }
  if (is_first) note({.kind = Kind::kRestoring, .text = base_name(prefix)});
  return std::nullopt;
}

void RunJournal::restored(const std::string& prefix, std::optional<int64_t> step) {
  if (fitness(base_name(prefix)) != Fitness::kFit) {
    log_warning(
        "checkpoint {} is restored although the loss went bad before it was taken, or shortly after: no other is left",
        prefix);
  }
  note({.kind = Kind::kRestored, .step = step, .text = base_name(prefix)});
  const int64_t deaths = history().deaths_after(base_name(prefix));
  if (!options_.skip_crashing_checkpoints || deaths < kMostDeaths) return;
  log_warning(
      "checkpoint {} is tried again, because {}: {} runs restored from it failed", prefix,
      has_reason_to_skip(base_name(prefix), deaths) ? "no other is left" : "the state file was edited to name it",
      deaths);
}

void RunJournal::initialised(std::optional<int64_t> step) {
  note({.kind = Kind::kInitialised, .step = step});
}

void RunJournal::found() {
  note({.kind = Kind::kFound});
}

void RunJournal::training(std::optional<int64_t> step) {
  note({.kind = Kind::kTraining, .step = step});
}

void RunJournal::mark(std::optional<int64_t> step, Seconds ago) {
  note({.kind = Kind::kMark, .step = step}, ago);
}

void RunJournal::hung(const std::string& what) {
  note({.kind = Kind::kHung, .text = what});
}

void RunJournal::interrupted(std::optional<int64_t> step) {
  note({.kind = Kind::kInterrupted, .step = step});
}

void RunJournal::diverged(const Rollback& rollback, bool ends) {
  note({.kind = Kind::kDiverged, .step = rollback.until_step, .text = Rollbacks::text_of(rollback, ends)});
}

void RunJournal::saved(const std::string& prefix, std::optional<int64_t> step, const SaveCosts& costs) {
  note({.kind = Kind::kSaved,
        .step = step,
        .stalled = costs.stalled,
        .lasted = costs.lasted,
        .cost = costs.cost,
        .text = base_name(prefix)});
}

void RunJournal::save_failed(int64_t in_a_row, std::optional<int64_t> step, const std::string& error) {
  note({.kind = Kind::kSaveFailed, .step = step, .text = text_of_failed_save(in_a_row, error)});
}

void RunJournal::saves_work_again() {
  note({.kind = Kind::kSaveFailed, .text = text_of_failed_save(0, "the checkpoint is there")});
}

void RunJournal::stop_requested(const std::string& why, std::optional<int64_t> step) {
  if (history().sums().stop_requested) return;
  note({.kind = Kind::kStopRequested, .step = step, .text = why});
}

void RunJournal::ended(const std::exception_ptr& error, bool is_disturbed, double unsaved, bool is_preempted) {
  RunEvent event{.kind = Kind::kEnded, .text = is_preempted ? kPreemptedText : ""};
  if (error) {
    event.kind = is_disturbed || is_of_surroundings(error) ? Kind::kDisturbed : Kind::kFailed;
    event.text = message_of(error);
  }
  try {
    note(event);
  } catch (const Error& taken) {
    log_error("the end of this run could not be written to the journal: {}", taken.what());
  }
  RunHistory all;
  Seconds trained{0};  // in this run
  std::string remark;
  std::unique_ptr<WritableFile> file;
  std::unique_ptr<CrashRecord> crash_record;
  {
    MutexLock lock(mutex_);
    if (!std::exchange(is_open_, false)) return;
    all = history_;
    trained = std::max(Seconds{0}, all.breakdown().training - before_.training);  // what it has lost is redone
    if (!has_trained_ && all.breakdown().initialising - before_.initialising >= kJournalMarkSecs) remark = kNoStep;
    if (!turns_.is_hanging()) crash_record = std::move(crash_record_);  // else to remove its file might hang, too
    if (!turns_.is_taken()) file = file_.release();
  }
  file.reset();
  log_info("{}: {}{}", directory_, describe(all.breakdown(), all.sums().runs, unsaved * trained), remark);
}

RunHistory RunJournal::history() const {
  MutexLock lock(mutex_);
  if (!is_open_) return {};
  RunHistory history = history_;
  history.apply({.kind = Kind::kMark, .time = time_now()});
  return history;
}

// Within a run it goes on evenly, whatever is done to the clock of the machine.
double RunJournal::time_now() const {
  return began_wall_ + (options_.clock->now() - began_).count();
}

void RunJournal::note(RunEvent event, Seconds ago) {
  {
    MutexLock lock(mutex_);
    if (!is_open_) return;
    event.time = time_now();
    if (ago > Seconds{0}) event.time = std::min(event.time, std::max(history_.sums().until, event.time - ago.count()));
    history_.apply(event);
    has_trained_ |= event.kind == Kind::kTraining || event.step > history_.sums().restored_step.value_or(0);
    if (event.kind == Kind::kRestored || event.kind == Kind::kInitialised || event.kind == Kind::kFound) {
      is_restoring_ = false;
    }
    if (may_wait(event)) {
      kept_line_ = format_run_event(event);
      return;
    }
    turns_.note(std::exchange(kept_line_, {}) + format_run_event(event), needs_disk(event.kind));
  }
  write_noted();
}

// Who writes goes on until there is nothing left to write, so that others may stop waiting for it.
void RunJournal::write_noted() {
  bool has_turn, hangs;
  {
    MutexLock lock(mutex_);
    const bool hung = turns_.is_hanging();
    has_turn = turns_.take(mutex_, kJournalTimeout);
    hangs = turns_.is_hanging() && !hung;
  }
  if (hangs)
    log_warning("the journal {} has not been written for {:g} s, and its file system seems to hang; training continues",
                path_, kJournalTimeout.count());
  if (!has_turn) return;
  try {
    while (write_next()) {
    }
  } catch (...) {
    MutexLock lock(mutex_);
    turns_.give_up();
    throw;
  }
}

// False: there is nothing more to write.
bool RunJournal::write_next() {
  std::optional<NoteTurns::Work> work;
  std::string sums;  // empty: the lines are appended
  {
    MutexLock lock(mutex_);
    work = turns_.next();
    if (!work) return false;
    if (work->begins || file_.is_to_be_replaced()) {
      sums = format_run_history(history_);
      kept_line_.clear();  // they have it
    }
  }
  sums.empty() ? file_.append(work->lines, work->to_disk) : file_.replace(sums);
  return true;
}

}  // namespace longhaul
