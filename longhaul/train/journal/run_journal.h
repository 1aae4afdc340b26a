#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/io/files/file.h"
#include "longhaul/train/journal/crash_record.h"
#include "longhaul/train/journal/journal_file.h"
#include "longhaul/train/journal/run_history.h"
#include "longhaul/train/journal/save_interval.h"

namespace longhaul {

struct RunJournalOptions {
  bool skip_crashing_checkpoints = true;
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();
};

// The tag of the goodput, in percent, in the events.
inline constexpr char kGoodputTag[] = "longhaul/goodput";
inline constexpr Seconds kJournalTimeout{5};

std::string journal_path(const std::string& directory);

// Records the history of all runs in a logdir, in a file there (docs/formats/run_journal.md). For the chief that holds
// the lock.
//
//   closed --begin--> open: skip_reason, restored | initialised | found, training, (mark | saved | save_failed |
//   hung)*, interrupted | stop_requested --ended--> closed
//
// While closed, it records nothing and its history is empty. While open, it has a CrashRecord next to it, from which
// the next run can tell a crash from a kill.
//
// An event is in the file when the call returns (but see save_failed()), so a kill of the process loses none; a crash
// of the machine may lose events since the beginning of the run, or since its end once that is recorded. A missing or
// damaged journal is used as far as it can be read. Errors of the file system are logged, once until it works again,
// and training continues: the next event retries. Only a DirectoryLostError is thrown.
//
// Any thread may call. One thread at a time writes, for all that have recorded events by then. The others wait for it,
// up to kJournalTimeout: if the file system hangs, their events are written when it recovers.
class RunJournal {
 public:
  explicit RunJournal(std::string directory, const RunJournalOptions& options = {})
      : directory_(std::move(directory)),
        path_(journal_path(directory_)),
        options_(options),
        turns_(*options_.clock),
        file_(path_, *options_.files) {}

  void begin();  // a run begins

  // For SessionManagerOptions::skip_reason: the reason, if the loss went bad after this checkpoint or shortly before it
  // (diverged()), which is then recorded; or if two runs died after restoring this checkpoint
  // (RunHistory::deaths_after()). None for the latest one in the state file if that was written after the journal's
  // last event before this run: then the user has chosen it by hand. The first checkpoint without a reason is recorded
  // as being restored.
  std::optional<std::string> skip_reason(const std::string& prefix);
  // Whether skip_reason() has one; records nothing.
  bool is_skipped(const std::string& prefix) const;
  // Whether that is the loss: the weights in the checkpoint may be bad.
  bool is_undone(const std::string& prefix) const;

  void restored(const std::string& prefix, std::optional<int64_t> step);
  void initialised(std::optional<int64_t> step);
  void found();                                // the model lives on servers
  void training(std::optional<int64_t> step);  // its first step is made
  // The run has come this far; or had so long ago, if nothing was recorded since.
  void mark(std::optional<int64_t> step, Seconds ago = Seconds{0});
  void hung(const std::string& what);  // no step was made for a long time
  // An error has ended the steps of this session, which are lost from the next one's checkpoint on. Absent: the newest
  // step is not known, and the account has a time in its place (RunHistory::uncounted()).
  void interrupted(std::optional<int64_t> step);
  // The loss went bad, and the model goes back. From now on, no checkpoint of a step after `rollback.restored_step` is
  // restored that is there before the next one is restored, unless one of its name is saved again. `ends`: the training
  // ends instead; a later run that restores the model does the same, but it is no rollback that counts.
  void diverged(const Rollback& rollback, bool ends = false);
  void saved(const std::string& prefix, std::optional<int64_t> step, const SaveCosts& costs);
  // A save has failed, and training continues; so many in a row. Writes nothing, and throws nothing: the newest is
  // written together with the next event of another kind, which is a mark within kJournalMarkSecs while the run trains.
  void save_failed(int64_t in_a_row, std::optional<int64_t> step, const std::string& error);
  void saves_work_again();  // without saved(), because the checkpoint was there
  void stop_requested(const std::string& why, std::optional<int64_t> step = std::nullopt);  // the first counts

  // The run ends, by this error if any; logs where the time went. Call once; nothing may be recorded afterwards.
  // `is_disturbed`: the error, whatever it is, must not be blamed on the checkpoint. `unsaved`: the share of this run's
  // steps that no checkpoint has, which the log does not count as goodput. (The next run repeats them, as `redone`.)
  // The log says so if no step was seen in all of the run, which then counts as initialising. `is_preempted`: the
  // program asks for its restart (Preemption), so that programs which follow the training go on waiting.
  void ended(const std::exception_ptr& error = nullptr, bool is_disturbed = false, double unsaved = 0,
             bool is_preempted = false);

  RunHistory history() const;  // including the time until now

 private:
  bool has_reason_to_skip(const std::string& checkpoint, int64_t deaths) const;
  enum class Fitness { kFit, kUndone, kUnfit };
  Fitness fitness(const std::string& checkpoint) const;
  void note(RunEvent event, Seconds ago = Seconds{0});
  double time_now() const REQUIRES(mutex_);
  void write_noted() EXCLUDES(mutex_);
  bool write_next() EXCLUDES(mutex_);

  const std::string directory_, path_;
  const RunJournalOptions options_;

  mutable Mutex mutex_;
  bool is_open_ GUARDED_BY(mutex_) = false;
  Seconds began_ GUARDED_BY(mutex_){0};
  double began_wall_ GUARDED_BY(mutex_) = 0;
  std::string chosen_ GUARDED_BY(mutex_);  // the checkpoint chosen by hand; empty: none
  RunHistory history_ GUARDED_BY(mutex_);
  TimeBreakdown before_ GUARDED_BY(mutex_);  // in earlier runs
  bool has_trained_ GUARDED_BY(mutex_) = false;
  bool is_restoring_ GUARDED_BY(mutex_) = false;
  std::string kept_line_ GUARDED_BY(mutex_);  // of a failed save; is written with the next event
  NoteTurns turns_ GUARDED_BY(mutex_);
  std::unique_ptr<CrashRecord> crash_record_;  // null: not open, or not possible

  JournalFile file_;  // used by the thread whose turn it is
};

}  // namespace longhaul
