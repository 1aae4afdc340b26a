#pragma once

#include <memory>
#include <optional>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/session/session.h"
#include "longhaul/train/coordination/looper_thread.h"
#include "longhaul/train/journal/run_journal.h"

namespace longhaul {

struct JournalServiceOptions {
  std::shared_ptr<Session> session;
  Output global_step;  // invalid: it is only marked how long the run lasts
  std::shared_ptr<RunJournal> journal;
  std::shared_ptr<FileWriter> writer;  // nullptr: no goodput in the events
  Seconds goodput_secs{0};             // 0: none
};

// A thread, lh-journal, that marks in the journal every five seconds how far the training has come, so that the next
// run knows it after a kill; that notes its first step, for which it looks more often until it is made, and a stop that
// is no error; and that writes the goodput in percent, every goodput_secs.
class JournalService : public LooperThread {
 public:
  JournalService(const Coordinator& coord, JournalServiceOptions options);

 protected:
  void start_loop() override;
  void run_loop() override;
  void stop_loop() override;
  Seconds next_interval() override;

 private:
  std::optional<int64_t> read_step() const;
  void write_goodput(int64_t step);

  const JournalServiceOptions options_;
  std::optional<int64_t> first_step_;
  bool is_training_ = false;
  Seconds pause_;
  Seconds next_goodput_{0};
};

}  // namespace longhaul
