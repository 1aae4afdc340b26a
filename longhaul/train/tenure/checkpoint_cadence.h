#pragma once

#include <memory>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/journal/first_interval.h"
#include "longhaul/train/journal/save_interval.h"

namespace longhaul {

class RunJournal;

struct CadenceOptions {
  SaveOption option{};                    // as the program set it
  std::optional<Seconds> interval{};      // between checkpoints; absent: it is in steps, counted elsewhere
  bool chooses_interval = false;          // kAuto: `interval` is only the first one
  std::shared_ptr<RunJournal> journal{};  // of earlier runs; null: not known
};

// Decides at which times the checkpoints of a training run are due. They are due at a fixed interval or, with kAuto, at
// the interval that loses the least time (best_save_interval()); sooner at first if earlier runs ended before they
// could save (first_interval.h); and again after a failure. The class has no thread and no clock: the caller passes the
// times and the outcome of each attempt.
//
//   made --session_begins--> [attempted]* --session_begins--> ...
//
// One thread at a time may call.
class CheckpointCadence {
 public:
  explicit CheckpointCadence(CadenceOptions options);

  // Call this when a session starts training, before its first checkpoint is attempted. Warns once about short runs,
  // and about kAuto without a journal.
  void session_begins(Seconds now);
  void attempted(Seconds now, bool worked);

  std::optional<Seconds> interval() const { return interval_; }  // the current one, without early_interval()
  // The shorter interval since the previous attempt that applies after short runs, until the option's interval is
  // reached. Absent: interval() applies.
  std::optional<Seconds> early_interval() const { return early_interval_; }
  bool is_early_due(Seconds now) const { return early_interval_ && now >= early_due_; }
  // Whether the last attempt failed and it is time to retry. Only attempts reported to this object count, not those
  // that others report to the same SaveAttempts.
  bool is_retry_due(const SaveAttempts& attempts) const;

  // For callers that sleep until a checkpoint is due: how long to wait after an attempt. If several checkpoints became
  // due during the attempt, only the last is taken, and this is logged: they do not queue up.
  Seconds wait_for_next(Seconds now);

  SaveCostMeter& meter() { return meter_; }  // the cost of the attempts, for kAuto

 private:
  void choose_interval();

  const CadenceOptions options_;
  SaveCostMeter meter_;
  std::optional<Seconds> interval_;
  bool has_looked_at_runs_ = false;
  bool begins_ = false;  // a session's first attempt is still to come
  bool last_failed_ = false;
  std::optional<Seconds> early_interval_;
  Seconds early_due_{0};
  Seconds due_{0};  // when the last checkpoint was due, or when the first will be
};

}  // namespace longhaul
