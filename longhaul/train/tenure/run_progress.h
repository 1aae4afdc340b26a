#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "longhaul/base/clock.h"
#include "longhaul/events/file_writer.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {

// Tells the journal of a run how far it has come: its first step, as soon as it is made, then a mark every
// kJournalMarkSecs, so that the next run knows it after a kill, and a stop that somebody requests. And the goodput, in
// percent, to its events. It has no thread and no clock: times and steps come in, from who looks at them. Steps are
// absent where they are not known.
//
// One thread at a time.
class RunProgress {
 public:
  // Without a journal: nothing is noted. Without a writer, or every 0 s: no goodput.
  explicit RunProgress(std::shared_ptr<RunJournal> journal, std::shared_ptr<FileWriter> writer = nullptr,
                       Seconds goodput_secs = Seconds{0});

  // A session trains from this step on. Where nobody counts steps, its first one counts as made at once.
  void session_begins(Seconds now, std::optional<int64_t> step, bool counts_steps = true);

  // How long to wait before the next look: less until the first step is made, which many would miss otherwise.
  Seconds next_look();
  // For who sees each step: whether there is something to look for, now.
  bool is_look_due(Seconds now) const { return !is_training_ || now >= next_mark_; }
  void look(Seconds now, std::optional<int64_t> step);

  void stop_requested(std::optional<int64_t> step);  // the first one counts

 private:
  void write_goodput(Seconds now, int64_t step);

  const std::shared_ptr<RunJournal> journal_;
  const std::shared_ptr<FileWriter> writer_;
  const Seconds goodput_secs_;
  bool counts_steps_ = true;
  std::optional<int64_t> first_step_;  // of the session
  bool is_training_ = false;
  Seconds pause_;
  Seconds next_mark_{0};
  std::optional<Seconds> next_goodput_;  // absent: no session has begun
};

}  // namespace longhaul
