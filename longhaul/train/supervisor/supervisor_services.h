#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "longhaul/events/file_writer.h"
#include "longhaul/session/session.h"
#include "longhaul/session/snapshots.h"
#include "longhaul/session/stop_notice.h"
#include "longhaul/train/checkpointing/save_once.h"
#include "longhaul/train/coordination/looper_thread.h"
#include "longhaul/train/saving/saver.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/tenure/checkpoint_cadence.h"

namespace longhaul {

class RunJournal;
class RunStatus;

// The state that the services of one session share. Each service holds a reference, so one that outlives the grace
// period still finds everything in place.
struct ServiceContext {
  Coordinator coord;
  std::shared_ptr<Session> session;
  std::shared_ptr<FileWriter> writer;  // may be null
  std::shared_ptr<Saver> saver;        // may be null
  Output summary_op;                   // may be invalid, and so may global_step
  Output global_step;
  std::string save_path;
  bool relative_paths = false;  // SaveOptions::relative_paths
  Seconds save_summaries_secs, save_model_secs;
  std::shared_ptr<SaveAttempts> saves;  // of the training run; not null if there is a saver
  bool chooses_interval = false;        // kAuto: save_model_secs is only the initial value
  std::shared_ptr<RunJournal> journal;  // may be null
  const Deadline* deadline = nullptr;   // of a preemption, and outlives the threads; nullptr: there is none
  std::shared_ptr<RunStatus> status;    // whose requests for checkpoints are served; null: there is no page
};

int64_t read_global_step(Session& session, const Output& global_step);

// Takes a checkpoint now, by save_once(). Returns whether it could be written.
bool save_checkpoint(const ServiceContext& context);

// The same; also measures how much training time the save costs.
bool save_and_measure(const ServiceContext& context, SaveCostMeter& meter);

// The argument of save_once() for these services. The context outlives it.
SaveTarget save_target(const ServiceContext& context);

// Programs may derive from these services, and construct and start them by hand: Supervisor::service_context(). The
// constructors throw InvalidArgumentError if the context lacks something that the service needs.

// Writes a summary every save_summaries_secs, the first one immediately. If the summaries can be computed alone, the
// thread computes them, in a run that sees the variables as they are between two steps. Otherwise it marks them as due,
// and the next training step, which has the feeds, computes them too. Summaries that are still due at the stop are
// dropped.
class SummaryService : public LooperThread {
 public:
  // UnimplementedError: the summaries cannot be computed alone, and the session has no StepFetching.
  explicit SummaryService(std::shared_ptr<const ServiceContext> context);

 protected:
  const ServiceContext& context() const { return *context_; }
  void run_loop() override;
  void stop_loop() override;

 private:
  const std::shared_ptr<const ServiceContext> context_;
  const std::vector<Output> fetches_;  // the summary, and the step if there is one
  StepFetching* const along_;          // computes them with the session's steps; null: they are computed alone
};

// Writes the number of steps per second ("global_step/sec"), every save_summaries_secs.
class StepCounterService : public LooperThread {
 public:
  explicit StepCounterService(std::shared_ptr<const ServiceContext> context);

 protected:
  const ServiceContext& context() const { return *context_; }
  void start_loop() override;
  void run_loop() override;

 private:
  const std::shared_ptr<const ServiceContext> context_;
  const std::string tag_;
  Seconds last_time_{0};
  int64_t last_step_ = 0;
  int logged_ = 0;
};

// Takes a checkpoint every save_model_secs. The first one is taken as soon as the memory for snapshots has its pages
// from the kernel, unless the model was restored: a run that dies soon after a restart should find the same checkpoint
// again. CheckpointCadence decides when one is due. A failed save is retried at the time that SaveAttempts gives or at
// the next interval, whichever is sooner.
//
// A program that ignores the stop, and makes steps until it calls join(), does not lose them: the service continues to
// save until then, and warns.
class TimerCheckpointService : public LooperThread {
 public:
  explicit TimerCheckpointService(std::shared_ptr<const ServiceContext> context);

 protected:
  const ServiceContext& context() const { return *context_; }
  void start_loop() override;
  void run_loop() override;
  void stop_loop() override;
  Seconds next_interval() override { return cadence_.wait_for_next(coord().clock().now()); }

 private:
  bool save();

  const std::shared_ptr<const ServiceContext> context_;
  const std::shared_ptr<Snapshots> snapshots_;
  CheckpointCadence cadence_;
  bool is_saved_;  // the model is unchanged since it was restored
};

// Takes a checkpoint whenever one is requested. A failed save is retried at the times that SaveAttempts gives, until
// training stops.
class RequestedSaveService : public LooperThread {
 public:
  // The context has a saver.
  RequestedSaveService(std::shared_ptr<const ServiceContext> context, std::string name)
      : LooperThread(context->coord, std::nullopt, {}, std::move(name)),  // wait: in run_loop()
        context_(std::move(context)) {}

 protected:
  const ServiceContext& context() const { return *context_; }
  void run_loop() override;
  // A request is notified to the context's coordinator. Any thread.
  virtual bool has_request() = 0;
  virtual bool take_request() = 0;

 private:
  const std::shared_ptr<const ServiceContext> context_;
  bool is_wanted_ = false;
};

// The requests are save signals.
class PreemptionService : public RequestedSaveService {
 public:
  // `preemption` outlives the thread.
  PreemptionService(std::shared_ptr<const ServiceContext> context, Preemption& preemption)
      : RequestedSaveService(std::move(context), "lh-preemption"),
        preemption_(preemption),
        requests_(preemption.notify_of_saves(this->context().coord)) {}

 protected:
  bool has_request() override { return preemption_.has_save_request(); }
  bool take_request() override { return preemption_.take_save_request(); }

 private:
  Preemption& preemption_;
  const std::shared_ptr<const Coordinator> requests_;  // notified of save requests
};

// The requests are servers that go soon, with what they have of the model: a checkpoint is taken before.
class StopNoticeService : public RequestedSaveService {
 public:
  // The context's session has `noticing`.
  StopNoticeService(std::shared_ptr<const ServiceContext> context, StopNoticing& noticing);

 protected:
  bool has_request() override { return *is_noticed_; }
  bool take_request() override { return is_noticed_->exchange(false); }

 private:
  const std::shared_ptr<std::atomic<bool>> is_noticed_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<const void> notices_;
};

}  // namespace longhaul
