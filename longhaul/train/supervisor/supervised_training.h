#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/session/session.h"
#include "longhaul/train/checkpointing/unsaved_steps.h"
#include "longhaul/train/coordination/open_training.h"
#include "longhaul/train/hangs/hang_watch.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/sessions/graph_defaults.h"
#include "longhaul/train/status/run_status.h"
#include "longhaul/train/supervisor/standard_services.h"
#include "longhaul/train/tenure/training_events.h"

namespace longhaul {

// A training run of a Supervisor, from the last preparation of a session until the stop: the session that can be saved,
// the step at which it began, and its services. One thread at a time may call.
class SupervisedTraining {
 public:
  // The defaults outlive it. A step that the session cannot tell is the journal's, if there is one (null: none).
  SupervisedTraining(const Coordinator& coord, const GraphDefaults& defaults, std::string save_path)
      : open_(coord), defaults_(defaults), save_path_(std::move(save_path)) {}

  // This session is trained, and can be saved. Reads its step.
  void begin(std::shared_ptr<Session> session, const RunJournal* journal);
  const std::shared_ptr<Session>& session() const { return session_; }  // null: none that can be saved

  // StandardServices::start()
  std::vector<std::shared_ptr<LooperThread>> start_services(ServiceContext context,
                                                            const StandardServicesOptions& options,
                                                            TrainingEvents& events);
  void end_services() { services_.reset(); }

  // From now on, and until it is called off, the steps of this session are watched. Not if it cannot tell of them.
  void watch_for_hangs(const std::shared_ptr<Session>& session, const HangOptions& options, Clock& clock,
                       HangRecords records = {});
  void stop_watching_for_hangs() { hang_watch_.reset(); }
  HangTeller hang_teller() const { return hang_watch_ ? hang_watch_->teller() : nullptr; }

  // The steps that no checkpoint has, if any, which it logs as a warning that `who` ends the training without saving.
  std::optional<UnsavedSteps> warn_of_unsaved_steps(const std::string& who, const RunJournal* journal) const;
  // The steps that no checkpoint has; after an error, logs them as a warning.
  std::optional<UnsavedSteps> count_unsaved_steps(const RunJournal* journal, bool after_error = false) const;

 private:
  const OpenTraining open_;
  const GraphDefaults& defaults_;
  const std::string save_path_;
  std::shared_ptr<Session> session_;
  std::optional<int64_t> start_step_;
  std::unique_ptr<StandardServices> services_;  // null: not started
  std::unique_ptr<HangWatch> hang_watch_;       // null: not watched
};

}  // namespace longhaul
