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
  std::optional<Seconds> interval{};      // between checkpoints; absent: by steps, counted elsewhere
  bool chooses_interval = false;          // kAuto: `interval` is only the initial value
  std::shared_ptr<RunJournal> journal{};  // of earlier runs; null: they are not known
};

// Decides when the checkpoints of a training run are due, by time: at a fixed interval, sooner at first after runs that
// were too short to save (first_interval.h), under kAuto at the interval that loses the least time
// (best_save_interval()), and again after a failure. It has no thread and no clock: the caller passes times and the
// outcome of each attempt.
//
//   made --session_begins--> [attempted]* --session_begins--> ...
//
// One thread at a time.
class CheckpointCadence {
 public:
  explicit CheckpointCadence(CadenceOptions options);

  // A session starts training now; its first checkpoint is about to be attempted. Warns, once, of short runs,
  // and of kAuto without a journal.
  void session_begins(Seconds now);
  void attempted(Seconds now, bool worked);

  std::optional<Seconds> interval() const { return interval_; }  // the current one, ignoring early_interval()
  // After short runs, until the option's interval is reached: the time since the previous attempt. Absent: as usual.
  std::optional<Seconds> early_interval() const { return early_interval_; }
  bool is_early_due(Seconds now) const { return early_interval_ && now >= early_due_; }
  // The last attempt failed, and it is time to retry. Only attempts reported here count as the last one, not those that
  // others report to the same SaveAttempts.
  bool is_retry_due(const SaveAttempts& attempts) const;

  // For callers that sleep until one is due: how long to wait after an attempt. Of the checkpoints that fell due during
  // the attempt, only the last is taken, and the log says so: they do not queue up.
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
  Seconds due_{0};  // when the last one was due, or the first will be
};

}  // namespace longhaul
