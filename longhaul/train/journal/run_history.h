#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/train/journal/short_runs.h"
#include "longhaul/train/journal/time_breakdown.h"

namespace longhaul {

// What happened to a run: what a line of its journal says (docs/formats/run_journal.md).
struct RunEvent {
  enum class Kind {
    kBegan,          // text: which process
    kRestoring,      // text: the checkpoint's name in the directory, here and below
    kRestored,       // step: its own
    kInitialised,    // step: what it begins with
    kTraining,       // the first step is made
    kMark,           // so far it has come
    kSaved,          // with the costs; text: the checkpoint
    kStopRequested,  // by a signal or the program; text: why
    kEnded,          // as it should
    kFailed,         // by an error of its own; text: which
    kDisturbed,      // by an error that another start may not meet: a full disk, a machine that does not answer
    kDied,           // by a fatal signal of its own (CrashRecord); text: which. The next run knows it
  };

  Kind kind = Kind::kMark;
  double time = 0;  // seconds since 1970
  std::optional<int64_t> step;
  Seconds stalled{0};  // how long the save held the training up,
  Seconds lasted{0};   // how long it took in all,
  Seconds cost{0};     // and the training time it cost: the stall, and the steps not made while it was written
  std::string text;
  bool operator==(const RunEvent&) const = default;
};

// What is remembered of all runs in a directory: the sum of their events.
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
    int64_t count = 0;  // of the runs that died of it
    bool operator==(const Crashes&) const = default;
  };
  struct Sums {
    Phase phase = Phase::kStopped;
    double until = 0;  // the time of the last event
    std::optional<int64_t> step, highest_step;
    int64_t runs = 0;
    int64_t interruptions = 0;         // runs that did not end as they should, and sessions lost
    std::optional<Seconds> save_cost;  // of the last ones, the newer the more
    TimeBreakdown breakdown;
    // Of the run that began last:
    std::string restored;  // the checkpoint; empty: none
    std::optional<int64_t> restored_step;
    bool has_saved = false;  // a step that was not there yet
    bool stop_requested = false;
    std::vector<Crashes> crashes;
    ShortRuns short_runs;
    bool operator==(const Sums&) const = default;
  };

  RunHistory() = default;
  explicit RunHistory(Sums sums) : sums_(std::move(sums)) {}

  void apply(const RunEvent& event);

  // Replaces what is known of this checkpoint. Of many, the ones that came first are forgotten.
  void remember_crashes(Crashes crashes);

  const Sums& sums() const { return sums_; }
  const TimeBreakdown& breakdown() const { return sums_.breakdown; }

  // How many runs were restored from this checkpoint and died of it, before they had saved a new one: by an error of
  // the program, once it was restored, or by a fatal signal of the process itself. A kill from outside says nothing of
  // the checkpoint, and a run that has no end was killed from outside. A run that was asked to stop, or was disturbed,
  // does not count; and one that saves or ends as it should takes the others off, and so does a checkpoint that is
  // written anew.
  int64_t deaths_after(const std::string& checkpoint) const;

  bool operator==(const RunHistory&) const = default;

 private:
  void account(const RunEvent& event);
  void account_training(const RunEvent& event, Seconds passed);
  double redone_share(std::optional<int64_t> to) const;
  void move_to(std::optional<int64_t> step);
  void begin_run();
  void recover(const RunEvent& event, Phase phase);
  void save(const RunEvent& event);
  void die();
  void blame_checkpoint();
  Crashes crashes_of(const std::string& checkpoint) const;
  void forget_crashes(const std::string& checkpoint);

  Sums sums_;
};

// How far checkpoints of such a training are apart when they lose the least time (train/journal/save_interval.h).
// `cost`: what one costs; absent: what the history knows. If nobody does, it is the shortest interval, so that it is
// soon known.
Seconds best_save_interval(const RunHistory& history, std::optional<Seconds> cost = std::nullopt);

}  // namespace longhaul
