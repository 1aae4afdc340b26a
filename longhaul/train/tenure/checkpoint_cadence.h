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
  SaveOption option;                    // what the program has said
  std::optional<Seconds> interval;      // between two checkpoints; absent: it goes by steps, which somebody else counts
  bool chooses_interval = false;        // kAuto: that is only what it begins with
  std::shared_ptr<RunJournal> journal;  // of the runs before; null: they are not known
};

// When the checkpoints of a training run are due, by time: an interval apart, sooner at first after runs that were too
// short to save (first_interval.h), under kAuto as it loses the least time (best_save_interval()), and again when one
// has failed. It has no thread and no clock: times come in, with what became of each attempt.
//
//   made --session_begins--> [attempted]* --session_begins--> ...
//
// One thread at a time.
class CheckpointCadence {
 public:
  explicit CheckpointCadence(CadenceOptions options);

  // A session trains from now on, for which a first checkpoint is attempted. Warns of short runs, once.
  void session_begins(Seconds now);
  void attempted(Seconds now, bool worked);

  std::optional<Seconds> interval() const { return interval_; }  // as it is now, without a shorter first one
  // After short runs, and until it is as the option says: so long after the attempt before. Absent: as usual.
  std::optional<Seconds> early_interval() const { return early_interval_; }
  bool is_early_due(Seconds now) const { return early_interval_ && now >= early_due_; }
  // The last attempt has failed, and the time to try again has come. What others report to the same SaveAttempts
  // changes nothing of the first.
  bool is_retry_due(const SaveAttempts& attempts) const;

  // For who is called when one is due, and waits then: how long, after an attempt. Those that fell due while it lasted
  // are left out, but for the last, as the log says: they do not queue up.
  Seconds wait_for_next(Seconds now);

  SaveCostMeter& meter() { return meter_; }  // of what the attempts cost, for kAuto

 private:
  void choose_interval();

  const CadenceOptions options_;
  SaveCostMeter meter_;
  std::optional<Seconds> interval_;
  bool has_looked_at_runs_ = false;
  bool begins_ = false;  // the first attempt of a session is still to come
  bool last_failed_ = false;
  std::optional<Seconds> early_interval_;
  Seconds early_due_{0};
  Seconds due_{0};  // when the last one was, or the first will be
};

}  // namespace longhaul
