#include "longhaul/train/journal/run_journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/directory_lock.h"
#include "longhaul/io/process_identity.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;

constexpr uint64_t kMostBytes = 256 * 1024;  // then the file is replaced by one with the sums
constexpr uint64_t kMostBytesRead = 16 * 1024 * 1024;
constexpr int64_t kMostDeaths = 2;  // after a checkpoint, before it is skipped

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

void remove_quietly(FileSystem& files, const std::string& path) {
  try {
    files.remove(path);
  } catch (const Error&) {
  }
}

bool needs_disk(Kind kind) {
  return kind == Kind::kEnded || kind == Kind::kFailed || kind == Kind::kDisturbed;
}

}  // namespace

std::string journal_path(const std::string& directory) {
  return join_path(directory, "run.journal");
}

void RunJournal::begin() {
  crash_record_.reset();
  warn_of_directory();
  RunHistory before = read();
  look_for_crash(before);
  std::string chosen = chosen_by_hand();
  {
    MutexLock lock(mutex_);
    history_ = std::move(before);
    trained_before_ = history_.breakdown().training;
    chosen_ = std::move(chosen);
    began_ = options_.clock->now();
    began_wall_ = std::max(0.0, options_.clock->wall_time());
    is_open_ = true;
    is_restoring_ = needs_disk_ = false;
    begins_ = true;
    lines_.clear();
    ++noted_;
  }
  write_noted();
  note({.kind = Kind::kBegan, .text = process_text()});
  open_crash_record();
}

void RunJournal::warn_of_directory() const {
  for (const std::string& path : {path_, crash_path()}) {
    if (!options_.files->is_directory(path)) continue;
    log_error(
        "{} is a directory, but must be a file of the journal: move it away. Until then nobody notes what happens to "
        "this training, and no checkpoint that crashes it is skipped",
        path);
  }
}

void RunJournal::look_for_crash(RunHistory& before) const {
  const RunHistory::Sums& sums = before.sums();
  if (sums.phase == RunHistory::Phase::kStopped) return;
  const std::optional<int> signal = read_crash_record(*options_.files, crash_path(), sums.runs);
  if (!signal) return;
  const std::string what = fmt::format("signal {} ({})", *signal, strsignal(*signal));
  log_warning("{}: the run before this one died of {}, of its own{}", directory_, what,
              sums.restored.empty() ? "" : fmt::format("; it had been restored from {}", sums.restored));
  before.apply({.kind = Kind::kDied, .time = sums.until, .text = what});
}

// For files that are the system's: the handler of signals knows no others.
void RunJournal::open_crash_record() {
  if (!FileSystem::real().exists(path_)) return;
  int64_t run;
  {
    MutexLock lock(mutex_);
    run = history_.sums().runs;
  }
  try {
    crash_record_ = std::make_unique<CrashRecord>(crash_path(), run);
  } catch (const Error& error) {
    log_warning("{}: if this run dies of a signal, the next one will take it for a kill from outside: {}", directory_,
                error.what());
  }
}

RunHistory RunJournal::read() const {
  try {
    ParsedJournal parsed = parse_run_journal(read_file(*options_.files, path_, kMostBytesRead));
    if (parsed.damaged_lines > 0) log_warning("{}: {} damaged lines are skipped", path_, parsed.damaged_lines);
    return parsed.history;
  } catch (const NotFoundError&) {
  } catch (const Error& error) {
    log_warning("what happened in earlier runs is not known, a new journal begins: {}", error.what());
  }
  return {};
}

// A saver writes the state file before it tells the journal of its save. Both times are of the file system's clock.
std::string RunJournal::chosen_by_hand() const {
  FileSystem& files = *options_.files;
  try {
    if (files.modified_at(join_path(directory_, kDefaultStateFile)) <= files.modified_at(path_)) return "";
    return base_name(read_checkpoint_state(files, directory_).state.model_checkpoint_path);
  } catch (const Error& error) {
    log_debug("{} has no state file that is younger than its journal: {}", directory_, error.what());
    return "";
  }
}

bool RunJournal::has_reason_to_skip(const std::string& checkpoint, int64_t deaths) const {
  if (!options_.skip_crashing_checkpoints || deaths < kMostDeaths) return false;
  MutexLock lock(mutex_);
  return checkpoint != chosen_;
}

std::optional<std::string> RunJournal::skip_reason(const std::string& prefix) {
  const int64_t deaths = history().deaths_after(base_name(prefix));
  if (has_reason_to_skip(base_name(prefix), deaths)) {
    return fmt::format(
        "{} runs that were restored from it died of it, by an error or a fatal signal of their own, before they had "
        "saved another one, as {} tells; it is kept until a checkpoint of a later step is saved; "
        "to try it again, name it in the file {}, or set skip_crashing_checkpoints to false",
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
  note({.kind = Kind::kRestored, .step = step, .text = base_name(prefix)});
  const int64_t deaths = history().deaths_after(base_name(prefix));
  if (!options_.skip_crashing_checkpoints || deaths < kMostDeaths) return;
  log_warning(
      "checkpoint {} is tried again, as {}: {} runs died of it", prefix,
      has_reason_to_skip(base_name(prefix), deaths) ? "no other is left" : "the state file was edited to name it",
      deaths);
}

void RunJournal::initialised(std::optional<int64_t> step) {
  note({.kind = Kind::kInitialised, .step = step});
}

void RunJournal::training(std::optional<int64_t> step) {
  note({.kind = Kind::kTraining, .step = step});
}

void RunJournal::mark(std::optional<int64_t> step) {
  note({.kind = Kind::kMark, .step = step});
}

void RunJournal::saved(const std::string& prefix, std::optional<int64_t> step, const SaveCosts& costs) {
  note({.kind = Kind::kSaved,
        .step = step,
        .stalled = costs.stalled,
        .lasted = costs.lasted,
        .cost = costs.cost,
        .text = base_name(prefix)});
}

void RunJournal::stop_requested(const std::string& why, std::optional<int64_t> step) {
  if (history().sums().stop_requested) return;
  note({.kind = Kind::kStopRequested, .step = step, .text = why});
}

void RunJournal::ended(const std::exception_ptr& error, bool is_disturbed, double unsaved) {
  RunEvent event{.kind = Kind::kEnded};
  if (error) {
    event.kind = is_disturbed || is_of_surroundings(error) ? Kind::kDisturbed : Kind::kFailed;
    event.text = message_of(error);
  }
  try {
    note(event);
  } catch (const Error& taken) {
    log_error("the end of a run is not in its journal: {}", taken.what());
  }
  RunHistory all;
  Seconds trained{0};  // in this run
  std::unique_ptr<WritableFile> file;
  std::unique_ptr<CrashRecord> crash_record;
  {
    MutexLock lock(mutex_);
    if (!std::exchange(is_open_, false)) return;
    all = history_;
    trained = all.breakdown().training - trained_before_;
    if (!is_hanging_) crash_record = std::move(crash_record_);  // else to remove its file might hang, too
    if (!is_writing_) file = std::move(file_);
  }
  file.reset();
  log_info("{}: {}", directory_, describe(all.breakdown(), all.sums().runs, unsaved * trained));
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

void RunJournal::note(RunEvent event) {
  {
    MutexLock lock(mutex_);
    if (!is_open_) return;
    event.time = time_now();
    history_.apply(event);
    if (event.kind == Kind::kRestored || event.kind == Kind::kInitialised) is_restoring_ = false;
    lines_ += format_run_event(event);
    needs_disk_ = needs_disk_ || needs_disk(event.kind);
    ++noted_;
  }
  write_noted();
}

// Who writes goes on until there is nothing left to write, so that others may stop waiting for it.
void RunJournal::write_noted() {
  bool has_turn, hangs;
  {
    MutexLock lock(mutex_);
    const bool hung = is_hanging_;
    has_turn = take_turn(noted_);
    hangs = is_hanging_ && !hung;
  }
  if (hangs)
    log_warning(
        "the journal {} has not been written to for {:g} s, as it seems its file system hangs; the "
        "training goes on",
        path_, kJournalTimeout.count());
  if (!has_turn) return;
  try {
    while (const std::optional<Work> work = next_work()) write_or_log(*work);
  } catch (...) {
    end_turn();
    throw;
  }
}

// False: so many notes are written, or will be by another.
bool RunJournal::take_turn(uint64_t notes) {
  const Seconds give_up = options_.clock->now() + kJournalTimeout;
  while (is_writing_ && written_ < notes && !is_hanging_) {
    const Seconds left = give_up - options_.clock->now();
    is_hanging_ = left <= Seconds{0};
    if (!is_hanging_) options_.clock->wait_for(written_one_, mutex_, left);
  }
  if (is_writing_ || written_ >= notes) return false;
  is_writing_ = true;
  return true;
}

// nullopt: there is none, and the turn is over.
std::optional<RunJournal::Work> RunJournal::next_work() {
  MutexLock lock(mutex_);
  written_ = taken_;
  is_hanging_ = false;
  is_writing_ = noted_ > written_;
  written_one_.notify_all();
  if (!is_writing_) return std::nullopt;
  taken_ = noted_;
  Work work{.replaces = begins_ || !file_ || bytes_ > kMostBytes, .to_disk = needs_disk_};
  work.text = work.replaces ? format_run_history(history_) : lines_;
  begins_ = needs_disk_ = false;
  lines_.clear();
  return work;
}

void RunJournal::end_turn() {
  MutexLock lock(mutex_);
  written_ = taken_;
  is_writing_ = is_hanging_ = false;
  written_one_.notify_all();
}

// A failure is logged if it is news. After an error the file is no longer used.
void RunJournal::write_or_log(const Work& work) {
  try {
    write(work);
    is_failing_ = false;
  } catch (const DirectoryLostError&) {
    throw;
  } catch (const Error& error) {
    file_.reset();
    if (std::exchange(is_failing_, true)) return;
    log_warning("the journal {} cannot be written, which is tried again; the training goes on: {}", path_,
                error.what());
  }
}

void RunJournal::write(const Work& work) {
  if (work.replaces) return replace_file(work.text);
  file_->append(work.text);
  bytes_ += work.text.size();
  if (work.to_disk) return file_->sync();
  file_->flush();
}

// 0. The directory is there, and this chief's.
// 1. The sums of all that happened go to a temporary file, and to the disk: a journal is never seen half.
// 2. The directory is still that.
// 3. The file takes its name. A crash of the machine may undo that: the journal before it is whole, too.
// 4. It stays open, and what happens from now on is appended.
void RunJournal::replace_file(const std::string& text) {
  file_.reset();
  const std::string temporary = path_ + ".new";
  check_directory_owner(*options_.files, path_);
  try {
    auto file = options_.files->create(temporary);
    file->append(text);
    file->sync();
    check_directory_owner(*options_.files, path_);
    options_.files->rename(temporary, path_);
    file_ = std::move(file);
    bytes_ = text.size();
  } catch (...) {
    remove_quietly(*options_.files, temporary);
    throw;
  }
}

}  // namespace longhaul
