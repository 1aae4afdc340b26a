#pragma once

#include <memory>
#include <optional>

#include "longhaul/train/supervisor/missing_steps.h"
#include "longhaul/train/supervisor/supervisor_services.h"
#include "longhaul/train/tenure/run_progress.h"

namespace longhaul {

// A thread, lh-journal, that records progress in the journal and writes the goodput to the events every
// save_summaries_secs (RunProgress). It polls every five seconds, more often until the first step is made. A stop
// without an error is recorded as well, and the steps that the program makes after it; an error, with the step to which
// training has come, unless that was on servers. If checkpoints are saved but no step is made, it warns (MissingSteps).
class JournalService : public LooperThread {
 public:
  explicit JournalService(std::shared_ptr<const ServiceContext> context);  // InvalidArgumentError: it has no journal

 protected:
  void start_loop() override;
  void run_loop() override;
  void stop_loop() override;
  Seconds next_interval() override { return progress_.next_look(); }

 private:
  std::optional<int64_t> read_step() const;
  void note_interruption();
  bool is_step_under_way() const;  // false: or the session cannot tell

  const std::shared_ptr<const ServiceContext> context_;
  RunProgress progress_;
  MissingSteps missing_;
};

}  // namespace longhaul
