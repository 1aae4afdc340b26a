#include "longhaul/train/supervisor/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "longhaul/base/log.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/checkpointing/final_checkpoint.h"
#include "longhaul/train/coordination/lost_session.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/divergence/way_back.h"
#include "longhaul/train/saving/startup_report.h"
#include "longhaul/train/sessions/end_training.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/status/run_status.h"
#include "longhaul/train/supervisor/progress_service.h"
#include "longhaul/train/supervisor/status_services.h"
#include "longhaul/train/supervisor/supervised_training.h"
#include "longhaul/train/supervisor/supervisor_services.h"

namespace longhaul {
namespace {

// Under kAuto the interval is chosen after the first save.
Seconds first_interval(const SaveInterval& interval) {
  return interval.is_auto() ? kShortestAutoInterval : interval.seconds();
}

bool can_save(const Saver* saver, const CheckpointPlace& place) {
  return saver != nullptr && !place.save_path.empty();
}

// Keeps the stops of a preemption coming.
std::shared_ptr<const Coordinator> heed(Preemption* preemption, const Coordinator& coord, bool takes_checkpoints) {
  return preemption != nullptr ? preemption->attach(coord, takes_checkpoints) : nullptr;
}

void close_or_log(const std::shared_ptr<Session>& session, const StopBudget& budget) {
  try {
    if (session) session->close_before(budget.deadline());
  } catch (const std::exception& error) {
    log_debug("the session could not be closed: {}", error.what());
  }
}

void check_is_chief(const SupervisorOptions& options) {
  if (options.is_chief) return;
  throw FailedPreconditionError(
      "Only chief supervisor can start standard services. Because only chief supervisors can write events.");
}

// A directory that is lost stops the training.
void begin_tenure(ChiefTenure& tenure, const Coordinator& coord) {
  tenure.begin([coord](const std::exception_ptr& error) { coord.request_stop(error); });
}

// A process that evaluates starts no services, and makes no steps.
void watch_for_hangs(SupervisedTraining& training, const std::shared_ptr<Session>& session,
                     const SupervisorOptions& options, const ChiefTenure& tenure, const TrainingEvents& events) {
  training.watch_for_hangs(session, options.services.hang, *options.clock, {tenure.journal(), events.writer()});
  if (tenure.status()) tenure.status()->watch_hangs(training.hang_teller());
}

// Does nothing without a page.
void tell_status(const std::shared_ptr<RunStatus>& status, const Coordinator& coord, const FileWriter* writer) {
  if (!status) return;
  status->stopped_by(coord);
  if (writer != nullptr) status->follow_scalars(writer->logdir());
}

void follow_steps(const std::shared_ptr<RunStatus>& status, const Coordinator& coord,
                  const std::shared_ptr<Session>& session, const Output& global_step) {
  if (!status || !global_step.valid()) return;
  std::make_shared<StepLookService>(coord, session, global_step, status)->start();
}

// Who has no checkpoints of its own says nothing about them.
void show_progress(const SupervisorOptions& options, ServiceContext context, bool can_save) {
  if (!options.services.progress) return;
  if (!can_save) context.saves = nullptr;
  std::make_shared<ProgressService>(context, *options.services.progress, options.chief.status.last_step)->start();
}

std::optional<UnsavedSteps> warn_of_unsaved_steps(const SupervisedTraining* training, const ChiefTenure& tenure,
                                                  const std::string& who) {
  return training != nullptr ? training->warn_of_unsaved_steps(who, tenure.journal().get()) : std::nullopt;
}

// So that whoever trains in a loop has one class of error to go on after.
void with_losses_as_aborted(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    if (!is_lost_session(error) || error.code() == Code::kAborted) throw;
    throw_error(
        Code::kAborted,
        fmt::format("The session was lost, make a new one. The cause: {}: {}", code_name(error.code()), error.what()),
        error.failed_step());
  }
}

// A managed session, of which a Supervisor has one at a time.
class ManagedSessionTurn {
 public:
  explicit ManagedSessionTurn(std::atomic<bool>& is_taken) : is_taken_(is_taken) {
    if (!is_taken_.exchange(true)) return;
    throw FailedPreconditionError(
        "managed_session() of this Supervisor is already running, in another thread or around this call: a Supervisor "
        "has one session at a time. Threads that train with it share the body's session (coord().start_thread()); "
        "another training run needs a Supervisor and a logdir of its own");
  }
  ~ManagedSessionTurn() { is_taken_ = false; }
  ManagedSessionTurn(const ManagedSessionTurn&) = delete;
  ManagedSessionTurn& operator=(const ManagedSessionTurn&) = delete;

 private:
  std::atomic<bool>& is_taken_;
};

bool is_preempted(const SupervisorOptions& options) {
  return options.chief.preemption != nullptr && options.chief.preemption->is_preempted();
}

void save_last(const ServiceContext& context, const ChiefTenure& tenure) {
  save_final_checkpoint(save_target(context), *context.session, tenure.budget());
}

void write_graph(const SupervisorOptions& options, TrainingEvents& events) {
  if (!options.logdir.empty()) write_graph_text(*options.graph, options.logdir, *options.files);
  events.write_graph();
}

FallBackOptions own_search(const SupervisorOptions& options) {
  return {.files = options.files,
          .directory = options.logdir,
          .mirror = searched_mirror(options.chief),
          .basename = options.checkpoint_basename,
          .recovery = options.chief.recovery};
}

// Before the services, which save: what on_rollback does is not undone by a checkpoint without it.
void begin_way_back(WayBack& way_back, WayBack::Place place, Session& session, const std::string& restored_from,
                    const Output& global_step) {
  way_back.session_begins(std::move(place), session, restored_from, read_global_step(session, global_step));
}

// A model that goes back is trained on in another session, unless something else fails now.
void end_to_go_back(ChiefTenure& tenure, Teardown& end, const TrainingEnd& steps) {
  tenure.end_session(end, steps, "the loss went bad, and the model goes back to the last good checkpoint");
  if (!is_rollback(end.error())) tenure.end(end);
}

// A worker does not, and a chief that has failed or is preempted is restarted.
bool ends_training(const SupervisorOptions& options, const Coordinator& coord) {
  return options.is_chief && coord.reported_error() == nullptr && !is_preempted(options);
}

}  // namespace

Supervisor::Supervisor(const SupervisorOptions& options)
    : options_(effective_options(options)),
      coord_({.clock = options_.clock}),
      saves_(save_attempts(options_)),
      way_back_(way_back(options_)),
      graph_defaults_(graph_defaults(options_)),
      place_(checkpoint_place(options.logdir, options_)),
      tenure_(tenure_options(options_, saves_)),
      events_(training_events(options_, saver())),
      session_manager_(longhaul::session_manager(options_, graph_defaults_, coord_, tenure_)),
      preempted_(heed(options_.chief.preemption, coord_, !is_chief() || can_save(saver(), place_))) {
  if (place_.relative_paths && saver() != nullptr) saver()->name_relatively_in(options_.logdir);
  options_.graph->finalize();
}

// A program that joins the threads itself has not ended the run by that.
Supervisor::~Supervisor() {
  if (training_) training_->stop_watching_for_hangs();
  if (coord_.joined() && !training_) return;
  if (!training_ && can_save(saver(), place_) && saver()->last_saved().empty() && std::uncaught_exceptions() == 0) {
    log_warning(
        "a Supervisor is destroyed that no session was trained with: there is no checkpoint of this run in {}. Train "
        "in managed_session(), or with the session of prepare_or_wait_for_session()",
        options_.logdir);
  }
  Teardown end;
  if (std::uncaught_exceptions() > 0) {
    end = Teardown(std::make_exception_ptr(AbortedError("an exception ended the run before it was stopped")));
  }
  const std::exception_ptr before = end.error();
  tenure_.end(
      end,
      {.threads = [&] { join({.ignore_live_threads = true}); },
       .unsaved_steps =
           [&] { return warn_of_unsaved_steps(training_.get(), tenure_, "a Supervisor destroyed without stop()"); },
       .events =
           [&] {
             training_.reset();  // its services hold the writer
             events_.release(tenure_.budget().deadline());
           }});
  if (end.error() == before) return;
  log_error("a Supervisor destroyed without stop() ended with an error: {}", message_of(end.error()));
}

// Whoever writes to it without asking whether it exists finds the reason in the log.
bool Supervisor::is_preempted() const {
  return longhaul::is_preempted(options_);
}

FileWriter* Supervisor::summary_writer() const {
  return events_.writer_or_log(!is_chief()               ? "this process is not the chief (SupervisorOptions::is_chief)"
                               : options_.logdir.empty() ? "SupervisorOptions::logdir is empty"
                                                         : "SupervisorOptions::summary_writer is none");
}

std::shared_ptr<Session> Supervisor::prepare_or_wait_for_session(const PrepareSessionOptions& options) {
  if (has_managed_session_) {
    throw FailedPreconditionError(
        "managed_session() of this Supervisor is running: use the session passed to its body");
  }
  end_session_before();
  return prepare_again(options);
}

// Its services would save beside those of the next one.
void Supervisor::end_session_before() {
  if (!training_) return;
  if (should_stop()) {
    try {
      join({.ignore_live_threads = true});
    } catch (const std::exception& error) {
      log_info("the previous session ended with an error: {}", error.what());
    }
  }
  const std::vector<std::string> threads = coord_.running();
  if (threads.empty()) return;
  throw FailedPreconditionError(fmt::format(
      "this Supervisor already has a session: call stop() first. Threads that use it: {}", fmt::join(threads, ", ")));
}

std::shared_ptr<Session> Supervisor::prepare_again(const PrepareSessionOptions& options) {
  Teardown before(std::make_exception_ptr(AbortedError("another session was prepared")));
  if (!tenure_.is_kept()) {
    tenure_.end(before, {.events = [&] {
                  if (training_) events_.flush(tenure_.budget().deadline());
                }});
  }
  training_.reset();
  coord_.clear_stop();
  preempted_ = heed(options_.chief.preemption, coord_, !is_chief() || can_save(saver(), place_));
  try {
    return prepare(options);
  } catch (...) {
    tenure_.failed(std::current_exception());
    throw;
  }
}

// Without services nobody looks for the first step.
std::shared_ptr<Session> Supervisor::prepare(const PrepareSessionOptions& options) {
  if (options_.chief.preemption == nullptr) Preemption::warn_of_unused();
  if (way_back_ && way_back_->options().keep_in_checkpoints && !options.master.empty())
    throw InvalidArgumentError(kServersKeepNothing);
  const bool goes_on = tenure_.is_kept();
  begin_tenure(tenure_, coord_);
  events_.begin();
  tell_status(tenure_.status(), coord_, events_.writer().get());
  tenure_.limit_waits_for_events(events_.writer());
  std::shared_ptr<Session> session =
      is_chief() ? prepare_as_chief(options)
                 : session_manager_->wait_for_session(options.master, options.config, options.max_wait_secs);
  if (is_chief() && !goes_on) write_graph(options_, events_);
  note_session(session);
  tenure_.recovered(restored_from(), session_manager_->found_model());
  if (way_back_) {
    begin_way_back(*way_back_,
                   {.journal = tenure_.journal(),
                    .saver = saver(),
                    .search = own_search(options_),
                    .events = events_.writer().get()},
                   *session, restored_from(), global_step());
  }
  follow_steps(tenure_.status(), coord_, session, global_step());
  show_progress(options_, {.coord = coord_, .session = session, .global_step = global_step(), .saves = saves_},
                can_save(saver(), place_));
  if (!options.start_standard_services) {
    if (tenure_.journal()) tenure_.journal()->training(std::nullopt);
    return session;
  }
  if (is_chief()) {
    log_debug("Starting standard services.");
    start_standard_services(session);
  }
  log_debug("Starting queue runners.");
  start_queue_runners(session);
  watch_for_hangs(*training_, session, options_, tenure_, events_);
  return session;
}

std::shared_ptr<Session> Supervisor::prepare_as_chief(const PrepareSessionOptions& options) {
  if (can_save(saver(), place_)) report_checkpoint_costs(*saver(), options_.logdir);
  return session_manager_->prepare_session({.master = options.master,
                                            .init_op = graph_defaults_.init_op,
                                            .saver = saver(),
                                            .checkpoint_dir = options_.logdir,
                                            .mirror = searched_mirror(options_.chief),
                                            .deadline = tenure_.budget().deadline(),
                                            .checkpoint_basename = options_.checkpoint_basename,
                                            .recovery = options_.chief.recovery,
                                            .wait_for_checkpoint = options.wait_for_checkpoint,
                                            .max_wait_secs = options.max_wait_secs,
                                            .config = options.config,
                                            .init_feed_dict = options_.init_feed_dict,
                                            .init_fn = options_.init_fn});
}

// A program that swallows the error is stopped all the same: what a bad step has left must not be trained on.
void Supervisor::look_at_loss(Session& session, double loss) {
  if (!way_back_) {
    throw FailedPreconditionError(
        "Supervisor::look_at_loss() was called, but nothing watches the loss: set ServiceOptions::divergence");
  }
  try {
    way_back_->look(read_global_step(session, global_step()) - 1, loss);
  } catch (...) {
    request_stop(std::current_exception());
    throw;
  }
}

void Supervisor::note_session(const std::shared_ptr<Session>& session) {
  training_ = std::make_unique<SupervisedTraining>(coord_, graph_defaults_, place_.save_path);
  if (!can_save(saver(), place_)) return;
  tenure_.mirror_saves_of(*saver());
  training_->begin(session, tenure_.journal().get());
}

ServiceContext Supervisor::service_context(std::shared_ptr<Session> session) const {
  check_is_chief(options_);
  if (!session) throw InvalidArgumentError("services need a session, not a null pointer");
  return {.coord = coord_,
          .session = std::move(session),
          .writer = events_.writer(),
          .saver = graph_defaults_.saver,
          .summary_op = graph_defaults_.summary_op,
          .global_step = graph_defaults_.global_step,
          .save_path = place_.save_path,
          .relative_paths = place_.relative_paths,
          .save_summaries_secs = options_.save_summaries_secs,
          .save_model_secs = first_interval(options_.save_model_secs),
          .saves = saves_,
          .chooses_interval = options_.save_model_secs.is_auto(),
          .journal = tenure_.journal(),
          .deadline = tenure_.budget().deadline(),
          .status = tenure_.status()};
}

std::vector<std::shared_ptr<LooperThread>> Supervisor::start_standard_services(std::shared_ptr<Session> session) {
  check_is_chief(options_);
  if (options_.logdir.empty()) {
    log_warning(
        "Standard services need a 'logdir', but SupervisorOptions::logdir is empty: no checkpoints, summaries or step "
        "counts are written, and a restart starts from scratch. Pass .logdir = \"runs/NAME\", or, if that is intended, "
        "managed_session(body, {{.start_standard_services = false}})");
    return {};
  }
  begin_tenure(tenure_, coord_);
  if (!training_) note_session(session);
  watch_for_hangs(*training_, session, options_, tenure_, events_);
  return training_->start_services(
      service_context(std::move(session)),
      {.preemption = options_.chief.preemption, .digest_every_n_steps = options_.services.digest_every_n_steps},
      events_);
}

QueueRunnerThreads Supervisor::start_queue_runners(std::shared_ptr<Session> session) {
  return start_queue_runners(std::move(session), queue_runners(*options_.graph));
}

QueueRunnerThreads Supervisor::start_queue_runners(std::shared_ptr<Session> session,
                                                   const std::vector<QueueRunner>& runners) {
  QueueRunnerThreads threads;
  for (const QueueRunner& runner : runners) {
    for (auto& thread : runner.create_threads(session, coord_, /*start=*/true)) threads.push_back(std::move(thread));
  }
  return threads;
}

std::shared_ptr<LooperThread> Supervisor::loop(std::optional<Seconds> interval, std::function<void()> target) {
  return LooperThread::loop(coord_, interval, std::move(target), "lh-loop");  // wait: the program's interval
}

// Threads that do not end have half of what a preemption leaves.
void Supervisor::join(const StopOptions& options) {
  request_stop();
  coord_.join({.stop_grace = options_.stop_grace_secs,
               .ignore_live_threads = options.ignore_live_threads,
               .give_up_at = tenure_.budget().half_time(coord_.clock())},
              options.threads);
}

void Supervisor::stop(const StopOptions& options) {
  TrainingEnd steps{.threads = [&] { join(options); },
                    .unsaved_steps = [&] { return warn_of_unsaved_steps(training_.get(), tenure_, "stop()"); }};
  if (options.save_checkpoint && training_ && training_->session()) {
    steps.last_checkpoint = [&] { save_last(service_context(training_->session()), tenure_); };
  }
  end(std::move(steps), options.close_summary_writer);
}

// Throws the first error; `error` comes before all.
void Supervisor::end(TrainingEnd steps, bool close_summary_writer, std::exception_ptr error) {
  if (training_) training_->stop_watching_for_hangs();
  const bool goes_back = is_rollback(coord_.reported_error());
  steps.events = [&] {
    const Deadline* const deadline = tenure_.budget().deadline();
    if (training_) training_->end_services();
    if (close_summary_writer && !goes_back) {
      return events_.close(saver() != nullptr ? saver()->last_saved() : "", tenure_.is_refused(), deadline);
    }
    if (!tenure_.is_refused()) events_.flush(deadline);
  };
  Teardown end(std::move(error));
  goes_back ? end_to_go_back(tenure_, end, steps) : tenure_.end(end, steps);
  training_.reset();
  end.raise_error();
}

void Supervisor::managed_session(const std::function<void(Session&)>& body, const ManagedSessionOptions& options) {
  const ManagedSessionTurn turn(has_managed_session_);
  end_session_before();
  std::shared_ptr<Session> session;
  std::exception_ptr refusal;  // the caller's alone: nothing has started that needs to be told
  coord_.clear_stop();
  stop_on_exception([&] {
    try {
      session = prepare_again({.master = options.master,
                               .config = options.config,
                               .max_wait_secs = options.max_wait_secs,
                               .start_standard_services = options.start_standard_services});
    } catch (const DirectoryLockedError&) {
      refusal = std::current_exception();
      return;
    }
    body(*session);
  });
  bool is_saved = false;
  const auto end_all = [&] {
    end({.threads = [&] { join(); },
         .last_checkpoint =
             [&] {
               const bool saves = options_.services.save_at_end && session && can_save(saver(), place_);
               if (saves) save_last(service_context(session), tenure_);
               is_saved = true;
             },
         .unsaved_steps =
             [&] {
               const bool is_error = coord_.reported_error() != nullptr;
               return training_ ? training_->count_unsaved_steps(tenure_.journal().get(), is_error) : std::nullopt;
             },
         .session =
             [&] {
               if (is_saved && session && ends_training(options_, coord_)) tell_end_of_training(*session);
               close_or_log(session, tenure_.budget());
             }},
        options.close_summary_writer, refusal);
  };
  options.master.empty() ? end_all() : with_losses_as_aborted(end_all);
}

void Supervisor::wait_for_stop() const {
  coord_.wait_for_stop();
}

void Supervisor::summary_computed(Session& session, std::string_view summary, std::optional<int64_t> global_step) {
  if (!events_.writer()) throw FailedPreconditionError("Writing a summary requires a summary writer.");
  if (!global_step && graph_defaults_.global_step.valid()) {
    global_step = read_global_step(session, graph_defaults_.global_step);
  }
  events_.writer()->add_summary(summary, global_step.value_or(0));
}

void Supervisor::summary_computed(Session& session, const Tensor& summary, std::optional<int64_t> global_step) {
  summary_computed(session, summary.item<std::string>(), global_step);
}

void Supervisor::summary_computed(Session& session, const proto::Summary& summary, std::optional<int64_t> global_step) {
  summary_computed(session, summary.SerializeAsString(), global_step);
}

}  // namespace longhaul
