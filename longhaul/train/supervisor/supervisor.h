#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "longhaul/train/coordination/looper_thread.h"
#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/sessions/graph_defaults.h"
#include "longhaul/train/signals/write_signals.h"
#include "longhaul/train/supervisor/supervisor_options.h"
#include "longhaul/train/supervisor/supervisor_parts.h"
#include "longhaul/train/supervisor/supervisor_services.h"
#include "longhaul/train/tenure/chief_tenure.h"
#include "longhaul/train/tenure/training_events.h"

namespace longhaul {

class SupervisedTraining;
class WayBack;

struct ManagedSessionOptions {
  std::string master{};  // "": this process
  SessionOptions config{};
  bool start_standard_services = true;
  bool close_summary_writer = true;  // false: the next session's events go to the same file
  // How long tasks of servers, and one that is not the chief its chief, are waited for; nullopt: forever.
  std::optional<Seconds> max_wait_secs = Seconds{7200};
};

struct PrepareSessionOptions {
  std::string master{};
  SessionOptions config{};
  bool wait_for_checkpoint = false;
  std::optional<Seconds> max_wait_secs = Seconds{7200};
  bool start_standard_services = true;
};

struct StopOptions {
  std::vector<std::shared_ptr<CoordinatedThread>> threads{};  // joined together with the supervisor's own
  bool close_summary_writer = true;
  bool ignore_live_threads = false;
  bool save_checkpoint = false;  // whether to take a final checkpoint, like managed_session()
};

// Supervises a training run: initialises the model or restores it from the newest intact checkpoint, takes checkpoints
// and writes summaries during training, and stops everything together when the work is done or something fails.
//
//   constructed --managed_session--> training --body ends, an error, request_stop()--> stopped --managed_session--> ...
//
//   Supervisor sv({.graph = &graph, .logdir = "runs/demo"});
//   sv.managed_session([&](Session& session) {
//     while (!sv.should_stop()) session.run(train_op);
//   });
//
// A relative logdir or mirror is resolved against the working directory at construction; the program may change
// directory afterwards.
//
// During training, from the preparation of a session to the end of managed_session() or stop(), or to its destruction,
// the chief holds a lock on its logdir (ChiefOptions::lock). A second chief is refused with a DirectoryLockedError that
// names the owner. A chief whose logdir was taken over, because it was silent for too long, stops with that error and
// writes no more checkpoints there. If the logdir disappears (unmounted, moved, removed), training continues. Saves and
// events then fail (DirectoryAwayError), are counted, and are retried until the logdir is back. It is not recreated.
//
// The constructor adds missing operations to the graph and finalizes it. prepare_or_wait_for_session() and stop() are
// the parts of managed_session(), for programs that need them separately. Only one thread at a time may use these three
// functions; any thread may use the others. If the process is killed, the newest checkpoint remains, and so do all
// events except those of the last flush_secs.
class Supervisor {
 public:
  // InvalidArgumentError: the options do not fit the graph. Errors of the file system: logdir cannot be written to.
  explicit Supervisor(const SupervisorOptions& options = {});
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  // Prepares a session, starts the services, calls `body`, stops the services, takes the final checkpoint
  // (ServiceOptions::save_at_end) and closes the session. Then throws the first error of the body or the services, if
  // there was one; an OutOfRangeError means the end of the input and is not an error. After an error no final
  // checkpoint is taken.
  //
  // If a session on servers (a master other than "") is lost, the error is an AbortedError, whatever the transport
  // said, with the whole text of the cause. A program continues with another session, of this Supervisor or of a new
  // one for the same logdir:
  //   while (true) {
  //     try {
  //       return train();
  //     } catch (const AbortedError& error) {
  //       log_warning("{}", error.what());
  //     }
  //   }
  void managed_session(const std::function<void(Session&)>& body, const ManagedSessionOptions& options = {});

  // Returns a session with an initialised model and running services. Throws what SessionManager throws.
  // DirectoryLockedError: logdir has another chief. DirectoryAwayError: logdir was locked for an earlier session and is
  // missing now. FailedPreconditionError: the services of another session are still running; call stop() first. If a
  // stop was already requested, say by the error of a lost session, the call waits for those services instead.
  std::shared_ptr<Session> prepare_or_wait_for_session(const PrepareSessionOptions& options = {});

  // The state that the standard services of a session share. Use it to start some of them, or classes derived from
  // them, by hand:
  //   auto context = std::make_shared<ServiceContext>(sv.service_context(session));
  //   context->global_step = examples_seen;                   // the steps to count
  //   std::make_shared<StepCounterService>(context)->start();
  // FailedPreconditionError: not the chief. InvalidArgumentError: no session.
  ServiceContext service_context(std::shared_ptr<Session> session) const;

  // Starts the services that the options select, and returns them. FailedPreconditionError: not the chief;
  // DirectoryLostError: logdir has another chief now. Without a logdir, starts none and logs that.
  std::vector<std::shared_ptr<LooperThread>> start_standard_services(std::shared_ptr<Session> session);

  // Starts the threads of these queue runners; they stop with the supervisor's own. The first form starts those in the
  // graph's collection `queue_runners`; prepare_or_wait_for_session() calls it after starting the services.
  QueueRunnerThreads start_queue_runners(std::shared_ptr<Session> session);
  QueueRunnerThreads start_queue_runners(std::shared_ptr<Session> session, const std::vector<QueueRunner>& runners);

  // Calls `target` on a new thread until the stop, every `interval`; nullopt: without pause.
  std::shared_ptr<LooperThread> loop(std::optional<Seconds> interval, std::function<void()> target);

  // Stops the threads and waits for them (under a preemption, for half of the remaining time); then closes the event
  // file, the mirror and the journal, and unlocks logdir. Does all of this even if a part of it fails. Throws the first
  // error reported. The session stays open. Takes no checkpoint unless StopOptions request one, and warns about the
  // steps that no checkpoint contains. The destructor logs the same warning if the Supervisor was not stopped. May be
  // called twice.
  void stop(const StopOptions& options = {});

  void request_stop(std::exception_ptr error = nullptr) { coord_.request_stop(std::move(error)); }
  bool should_stop() const { return coord_.should_stop(); }
  bool stop_on_exception(const std::function<void()>& body) { return coord_.stop_on_exception(body); }
  void wait_for_stop() const;

  // Watches the loss of the step just made (ServiceOptions::divergence). Call it after each step, in the body:
  //
  //   sv.managed_session([&](Session& session) {
  //     sv.look_at_loss(session, session.run({train_op, loss})[1].item<float>());
  //   });
  //
  // If it is bad, throws an error that ends the session without a checkpoint and comes out of managed_session(), also
  // if the body swallows it. RollBackError (an AbortedError): call managed_session() again, which restores the last
  // good checkpoint. DivergedError: the training ends. FailedPreconditionError: nothing watches the loss. One thread.
  void look_at_loss(Session& session, double loss);

  // Writes a summary, serialised or as run() returns it. Its step is that of the session, unless `global_step` is
  // given. FailedPreconditionError: there is no summary writer.
  void summary_computed(Session& session, std::string_view summary, std::optional<int64_t> global_step = std::nullopt);
  void summary_computed(Session& session, const Tensor& summary, std::optional<int64_t> global_step = std::nullopt);
  void summary_computed(Session& session, const proto::Summary& summary,
                        std::optional<int64_t> global_step = std::nullopt);

  bool is_chief() const { return options_.is_chief; }
  // Whether its Preemption (ChiefOptions::preemption) has requested the stop.
  bool is_preempted() const;
  SessionManager& session_manager() const { return *session_manager_; }
  const Coordinator& coord() const { return coord_; }
  const OpList& init_op() const { return graph_defaults_.init_op; }
  const Feeds& init_feed_dict() const { return options_.init_feed_dict; }
  const Output& ready_op() const { return graph_defaults_.ready_op; }
  const Output& ready_for_local_init_op() const { return graph_defaults_.ready_for_local_init_op; }
  FileWriter* summary_writer() const;  // nullptr: none; the first time, the log says why
  const Output& summary_op() const { return graph_defaults_.summary_op; }
  Seconds save_summaries_secs() const { return options_.save_summaries_secs; }
  const Output& global_step() const { return graph_defaults_.global_step; }
  Saver* saver() const { return graph_defaults_.saver.get(); }  // nullptr: none
  const SaveInterval& save_model_secs() const { return options_.save_model_secs; }
  // logdir/checkpoint_basename, absolute; empty: no logdir
  const std::string& save_path() const { return place_.save_path; }
  SaveStatus save_status() const { return saves_->status(); }                            // of all saves so far
  SaveStatus mirror_status() const { return options_.chief.mirror.attempts->status(); }  // the same for the mirror
  const std::string& restored_from() const { return session_manager_->restored_from(); }

  // TensorFlow's other names for these.
  std::shared_ptr<Session> PrepareSession(const PrepareSessionOptions& options = {}) {
    return prepare_or_wait_for_session(options);
  }
  QueueRunnerThreads StartQueueRunners(std::shared_ptr<Session> session) {
    return start_queue_runners(std::move(session));
  }
  QueueRunnerThreads StartQueueRunners(std::shared_ptr<Session> session, const std::vector<QueueRunner>& runners) {
    return start_queue_runners(std::move(session), runners);
  }
  std::vector<std::shared_ptr<LooperThread>> StartStandardServices(std::shared_ptr<Session> session) {
    return start_standard_services(std::move(session));
  }
  void Stop(const StopOptions& options = {}) { stop(options); }
  void RequestStop(std::exception_ptr error = nullptr) { request_stop(std::move(error)); }
  std::shared_ptr<LooperThread> Loop(std::optional<Seconds> interval, std::function<void()> target) {
    return loop(interval, std::move(target));
  }
  bool ShouldStop() const { return should_stop(); }
  bool StopOnException(const std::function<void()>& body) { return stop_on_exception(body); }
  void WaitForStop() const { wait_for_stop(); }
  template <typename Summary>
  void SummaryComputed(Session& session, const Summary& summary, std::optional<int64_t> global_step = std::nullopt) {
    summary_computed(session, summary, global_step);
  }

 private:
  void end_session_before();
  std::shared_ptr<Session> prepare_again(const PrepareSessionOptions& options);
  std::shared_ptr<Session> prepare(const PrepareSessionOptions& options);
  std::shared_ptr<Session> prepare_as_chief(const PrepareSessionOptions& options);
  void note_session(const std::shared_ptr<Session>& session);
  void join(const StopOptions& options = {});
  void end(TrainingEnd steps, bool close_summary_writer, std::exception_ptr error = nullptr);

  const WriteSignals write_signals_;
  std::atomic<bool> has_managed_session_{false};
  const SupervisorOptions options_;  // without the chief's, if this process is not the chief
  const Coordinator coord_;
  const std::shared_ptr<SaveAttempts> saves_;
  const std::unique_ptr<WayBack> way_back_;  // null: nothing watches the loss
  const GraphDefaults graph_defaults_;
  const CheckpointPlace place_;
  ChiefTenure tenure_;
  TrainingEvents events_;
  const std::shared_ptr<SessionManager> session_manager_;
  std::shared_ptr<const Coordinator> preempted_;  // the subscription to a preemption's stops; null: none
  std::unique_ptr<SupervisedTraining> training_;  // null: none
};

}  // namespace longhaul
