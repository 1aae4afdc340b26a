#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/train/journal/past_runs.h"
#include "longhaul/train/journal/rollbacks.h"
#include "longhaul/train/journal/short_runs.h"
#include "longhaul/train/journal/time_breakdown.h"
#include "longhaul/train/journal/unsaved_time.h"

namespace longhaul {

// An event in a run: one line of its journal (docs/formats/run_journal.md).
struct RunEvent {
  enum class Kind {
    kBegan,          // text: the process
    kRestoring,      // text: the checkpoint's name in the directory, here and below
    kRestored,       // step: its own
    kInitialised,    // step: the initial one
    kFound,          // the model lives on servers: it was neither restored nor initialised
    kTraining,       // the first step is made
    kMark,           // the run has come this far
    kSaved,          // with the costs; text: the checkpoint
    kSaveFailed,     // training continues; step: of the checkpoint; text: how many in a row, and the error (PastRuns)
    kInterrupted,    // an error has ended the steps, or has lost the session; step: the newest one, if it is known
    kHung,           // no step was made for a long time; text: for how long, and what is waited for
    kDiverged,       // the loss went bad at this step; text: what follows from it (Rollbacks)
    kRefused,        // text: a checkpoint that is not restored any more, because it was taken since or shortly before
    kStopRequested,  // by a signal or the program; text: why
    kEnded,          // normally
    kFailed,         // by its own error; text: the error
    kDisturbed,      // by an error that a restart may not meet: a full disk, an unreachable machine
    kDied,           // by its own fatal signal (CrashRecord); text: which. Recorded by the next run
  };

  Kind kind = Kind::kMark;
  double time = 0;  // seconds since 1970
  std::optional<int64_t> step;
  Seconds stalled{0};  // how long the save stalled training,
  Seconds lasted{0};   // how long it took in total,
  Seconds cost{0};     // and the training time it cost: the stall, and the steps not made while it was written
  std::string text;
  bool operator==(const RunEvent&) const = default;
};

// The training after the newest step that the journal knows. What a recovery loses of it is known as a time, not as a
// number of steps.
struct Uncounted {
  Seconds time{0};               // at most: a killed run says nothing of its last kJournalMarkSecs
  Seconds training{0};           // the part of it that the account has as training
  std::optional<int64_t> after;  // the newest known step
  bool operator==(const Uncounted&) const = default;
};

// A run that trains records a mark after each such time, so one that was killed had trained no longer since its last.
inline constexpr Seconds kJournalMarkSecs{5};

// The sum of the events of all runs in a directory.
//
//   stopped --began--> starting <--> restoring --training--> training --stop requested--> stopping
//      ^------------------ ended, failed, disturbed, died; or the next one begins ---------------'
//
// Any order of events is possible, since a journal may have lost lines.
class RunHistory {
 public:
  enum class Phase { kStopped, kStarting, kRestoring, kTraining, kStopping };
  struct Crashes {
    std::string checkpoint;
    int64_t count = 0;  // of the runs that died after restoring it
    bool operator==(const Crashes&) const = default;
  };
  struct Sums {
    Phase phase = Phase::kStopped;
    double until = 0;  // the time of the last event
    std::optional<int64_t> step, highest_step;
    int64_t runs = 0;
    int64_t interruptions = 0;         // runs that did not end normally, and lost sessions
    std::optional<Seconds> save_cost;  // of recent saves, newer ones weighted more
    TimeBreakdown breakdown;
    // Of the run that began last:
    std::string restored;  // the checkpoint; empty: none
    std::optional<int64_t> restored_step;
    bool has_saved = false;  // saved a step that no checkpoint had yet
    bool stop_requested = false;
    std::vector<Crashes> crashes;
    ShortRuns short_runs;
    bool operator==(const Sums&) const = default;
  };

  RunHistory() = default;
  explicit RunHistory(Sums sums) : sums_(std::move(sums)) {}

  void apply(const RunEvent& event);

  // Replaces the count for this checkpoint. If there are many, the oldest are forgotten.
  void remember_crashes(Crashes crashes);

  void remember_uncounted(const Uncounted& uncounted);  // replaces it

  void remember_unsaved(UnsavedTime unsaved) { unsaved_ = unsaved; }
  void remember_at_stake(TimeAtStake at_stake) { at_stake_ = at_stake; }

  void remember_rollbacks(Rollbacks rollbacks) { rollbacks_ = std::move(rollbacks); }

  void remember_run(PastRun run) { past_.remember(std::move(run)); }
  void remember_hangs(int64_t run, int64_t hangs) { past_.remember_hangs(run, hangs); }
  void remember_failed_saves(int64_t run, FailedSaves saves) { past_.remember_failed_saves(run, std::move(saves)); }

  const Sums& sums() const { return sums_; }
  const TimeBreakdown& breakdown() const { return sums_.breakdown; }
  const std::vector<PastRun>& runs() const { return past_.runs(); }  // the last ones; the newest may be under way
  const Rollbacks& rollbacks() const { return rollbacks_; }
  // The model of the last session lived on servers: it was neither restored nor initialised.
  bool found_model() const { return found_model_; }
  // Is redone if the next session restores or initialises the model.
  const Uncounted& uncounted() const { return uncounted_; }
  // The part of the account's training that is in no checkpoint, with what was lost and is not made again.
  const UnsavedTime& unsaved() const { return unsaved_; }
  // What a kill would lose now; of a run that was killed, what it has lost.
  const TimeAtStake& at_stake() const { return at_stake_; }

  // The number of runs that were restored from this checkpoint and died before they had saved a new one: by an error of
  // the program after the restore, or by the process's own fatal signal. A kill from outside does not count, and a run
  // without a recorded end was killed from outside. Runs that were asked to stop, or were disturbed, do not count
  // either. The count is reset by a run that saves or ends normally, and when the checkpoint is rewritten.
  int64_t deaths_after(const std::string& checkpoint) const;

  // What its text has. The rest follows from the events of the last session.
  bool operator==(const RunHistory& other) const {
    return sums_ == other.sums_ && uncounted_ == other.uncounted_ && past_ == other.past_ &&
           rollbacks_ == other.rollbacks_ && unsaved_ == other.unsaved_ && at_stake_ == other.at_stake_;
  }

 private:
  void apply_to_rollbacks(const RunEvent& event);
  void account(const RunEvent& event, Seconds passed);
  void count(const RunEvent& event, Seconds passed, Seconds trained);
  bool trains() const;
  void account_training(const RunEvent& event, Seconds passed);
  void account_stopping(const RunEvent& event, Seconds passed);
  double redone_share(std::optional<int64_t> to) const;
  void move_to(std::optional<int64_t> step);
  void begin_run();
  void recover(const RunEvent& event, Phase phase);
  void redo_uncounted();
  void save(const RunEvent& event);
  void die();
  void blame_checkpoint();
  Crashes crashes_of(const std::string& checkpoint) const;
  void forget_crashes(const std::string& checkpoint);

  Sums sums_;
  PastRuns past_;
  Rollbacks rollbacks_;
  Uncounted uncounted_;
  UnsavedTime unsaved_;
  TimeAtStake at_stake_;
  bool counts_steps_ = false;    // the session's events have told a step
  bool is_interrupted_ = false;  // no steps since then
  bool found_model_ = false;
};

// The interval between checkpoints that loses the least time for such a training run (train/journal/save_interval.h).
// `cost` is that of one checkpoint; absent: the history's. If that is not known either, returns the shortest interval,
// so that the cost is soon known.
Seconds best_save_interval(const RunHistory& history, std::optional<Seconds> cost = std::nullopt);

}  // namespace longhaul
