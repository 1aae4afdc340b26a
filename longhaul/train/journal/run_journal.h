#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "longhaul/base/clock.h"
#include "longhaul/base/mutex.h"
#include "longhaul/io/file.h"
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

// Of the events, in percent; how far apart the marks of who drives a journal are.
inline constexpr char kGoodputTag[] = "longhaul/goodput";
inline constexpr Seconds kJournalMarkSecs{5};

inline constexpr Seconds kJournalTimeout{5};

std::string journal_path(const std::string& directory);

// Remembers, in a file of the training's directory, what happened to all its runs (docs/formats/run_journal.md). It is
// for the chief that has the directory locked.
//
//   closed --begin--> open: skip_reason, restored or initialised, training, (mark | saved)*, stop_requested --ended-->
//   closed
//
// Closed, nothing is noted and nothing known. Open, it has a CrashRecord beside it, so that the next run can tell a
// crash from a kill.
//
// What was noted is in the file when the call returns, so a kill of the process loses nothing of it; a crash of the
// machine may lose what came since the begin of the run, or since its end once that is noted. A journal that is missing
// or damaged counts as far as it can be read. What the file system throws is logged, once until it works again, and the
// training goes on: the next note tries again. A DirectoryLostError alone is thrown.
//
// Any thread. One at a time writes, for all that noted something meanwhile; they wait for it, but not for longer than
// kJournalTimeout: on a file system that hangs, what they noted is written when it goes on.
class RunJournal {
 public:
  explicit RunJournal(std::string directory, const RunJournalOptions& options = {})
      : directory_(std::move(directory)),
        path_(journal_path(directory_)),
        options_(options),
        turns_(*options_.clock),
        file_(path_, *options_.files) {}

  void begin();  // a run does

  // For SessionManagerOptions::skip_reason: the reason, if two runs died of this checkpoint:
  // RunHistory::deaths_after(). None for the one that the state file names as the latest, if that was written after all
  // that the journal knew when the run began: somebody has chosen it by hand. The first one without a reason is noted
  // as being restored.
  std::optional<std::string> skip_reason(const std::string& prefix);

  void restored(const std::string& prefix, std::optional<int64_t> step);
  void initialised(std::optional<int64_t> step);
  void training(std::optional<int64_t> step);  // its first step is made
  void mark(std::optional<int64_t> step);      // so far it has come
  void saved(const std::string& prefix, std::optional<int64_t> step, const SaveCosts& costs);
  void stop_requested(const std::string& why, std::optional<int64_t> step = std::nullopt);  // the first one counts

  // The run ends, by this error if there is one, and where the time went is logged. Once; nothing may be noted after
  // it. `is_disturbed`: whatever the error is, it is not the checkpoint's. `unsaved`: the part of this run's steps that
  // no checkpoint has, which the log does not count as goodput. (The next run makes them again, which is `redone`.)
  void ended(const std::exception_ptr& error = nullptr, bool is_disturbed = false, double unsaved = 0);

  RunHistory history() const;  // with the time until now

 private:
  bool has_reason_to_skip(const std::string& checkpoint, int64_t deaths) const;
  void note(RunEvent event);
  double time_now() const REQUIRES(mutex_);
  void write_noted() EXCLUDES(mutex_);
  bool write_next() EXCLUDES(mutex_);

  const std::string directory_, path_;
  const RunJournalOptions options_;

  mutable Mutex mutex_;
  bool is_open_ GUARDED_BY(mutex_) = false;
  Seconds began_ GUARDED_BY(mutex_){0};
  double began_wall_ GUARDED_BY(mutex_) = 0;
  std::string chosen_ GUARDED_BY(mutex_);  // the checkpoint, by hand; empty: none
  RunHistory history_ GUARDED_BY(mutex_);
  Seconds trained_before_ GUARDED_BY(mutex_){0};  // in earlier runs
  bool is_restoring_ GUARDED_BY(mutex_) = false;
  NoteTurns turns_ GUARDED_BY(mutex_);
  std::unique_ptr<CrashRecord> crash_record_;  // null: not open, or there can be none

  JournalFile file_;  // of whose turn it is
};

}  // namespace longhaul
