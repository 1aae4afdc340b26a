#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {

// Records the progress of a run in its journal: its first step, as soon as it is made; then a mark every
// kJournalMarkSecs, from which the next run learns the progress after a kill; and a requested stop. It also writes the
// goodput, in percent, to the events. It has no thread and no clock: the caller passes times and steps. An absent step
// is not known.
//
// One thread at a time.
class RunProgress {
 public:
  // Without a journal, nothing is recorded; without a writer, or with 0 s, no goodput is written.
  explicit RunProgress(std::shared_ptr<RunJournal> journal, std::shared_ptr<FileWriter> writer = nullptr,
                       Seconds goodput_secs = Seconds{0});

  // A session starts training at this step. If steps are not counted, its first one counts as made immediately.
  void session_begins(Seconds now, std::optional<int64_t> step, bool counts_steps = true);

  // How long to wait before the next look(): less until the first step is made, so that short runs do not miss it.
  Seconds next_look();
  // For callers that see each step: whether look() has something to do now.
  bool is_look_due(Seconds now) const { return !is_training_ || now >= next_mark_; }
  void look(Seconds now, std::optional<int64_t> step);

  // An error has ended the steps of the session. Without a step, the journal has the time since the last one it knows;
  // interrupted_after() tells it one that was read so long ago.
  void interrupted(std::optional<int64_t> step);
  void interrupted_after(int64_t step, Seconds ago);

  void stop_requested(std::optional<int64_t> step);  // only the first call counts
  // In place of look() once a stop is recorded: a mark, if the program has made further steps.
  void look_after_stop(std::optional<int64_t> step);

 private:
  void write_goodput(Seconds now, int64_t step);

  const std::shared_ptr<RunJournal> journal_;
  const std::shared_ptr<FileWriter> writer_;
  const Seconds goodput_secs_;
  bool counts_steps_ = true;
  std::optional<int64_t> first_step_;  // of the session
  std::optional<int64_t> last_step_;   // as recorded at the stop, and after it
  bool is_training_ = false;
  Seconds pause_;
  Seconds next_mark_{0};
  std::optional<Seconds> next_goodput_;  // absent: no session has begun
};

}  // namespace longhaul
