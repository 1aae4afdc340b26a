#include "longhaul/train/supervisor/supervisor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/graph/graph_def.h"
#include "longhaul/io/canonical_directory.h"
#include "longhaul/proto/serialize.h"
#include "longhaul/train/checkpointing/final_checkpoint.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/saving/startup_report.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/journal_service.h"
#include "longhaul/train/supervisor/supervisor_services.h"
#include "longhaul/train/supervisor/weight_digest_service.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {
namespace {

GraphDefaults resolve(Graph& graph, const SupervisorOptions& options) {
  return resolve_defaults(graph,
                          {.ready_op = options.ready_op,
                           .ready_for_local_init_op = options.ready_for_local_init_op,
                           .init_op = options.init_op,
                           .local_init_op = options.local_init_op,
                           .saver = options.saver,
                           .summary_op = options.summary_op,
                           .global_step = options.global_step},
                          {.saver = {.files = options.files, .clock = options.clock}});
}

// Under kAuto the interval is chosen after the first save.
Seconds first_interval(const SaveInterval& interval) {
  return interval.is_auto() ? kShortestAutoInterval : interval.seconds();
}

std::shared_ptr<SaveAttempts> make_attempts(const SupervisorOptions& options) {
  return std::make_shared<SaveAttempts>(SaveAttemptsOptions{.max_failed_saves = options.max_failed_saves,
                                                            .last_save_timeout = options.last_save_timeout_secs,
                                                            .clock = options.clock});
}

std::unique_ptr<ChiefTenure> make_tenure(const SupervisorOptions& options, std::shared_ptr<SaveAttempts> saves) {
  return std::make_unique<ChiefTenure>(
      ChiefTenureOptions{.directory = options.logdir,
                         .lock = {.lock = options.lock_logdir,
                                  .lease_secs = options.lock_lease_secs,
                                  .with_flock = options.lock_with_flock},
                         .keep_journal = options.keep_journal,
                         .skip_crashing_checkpoints = options.skip_crashing_checkpoints,
                         .mirror = options.mirror,
                         .saves = std::move(saves),
                         .budget = options.preemption,
                         .files = options.files,
                         .clock = options.clock});
}

// A managed session, of which a Supervisor has one at a time.
class ManagedSessionTurn {
 public:
  explicit ManagedSessionTurn(std::atomic<bool>& is_taken) : is_taken_(is_taken) {
    if (!is_taken_.exchange(true)) return;
    throw FailedPreconditionError(
        "managed_session() of this Supervisor runs already, in another thread or around this call: it has one session "
        "at "
        "a time. Threads that train with it share the body's session (coord().start_thread()); another training has a "
        "Supervisor, and a logdir, of its own");
  }
  ~ManagedSessionTurn() { is_taken_ = false; }
  ManagedSessionTurn(const ManagedSessionTurn&) = delete;
  ManagedSessionTurn& operator=(const ManagedSessionTurn&) = delete;

 private:
  std::atomic<bool>& is_taken_;
};

}  // namespace

Supervisor::Supervisor(SupervisorOptions options)
    : options_(std::move(options)),
      graph_(Graph::or_default(options_.graph, "SupervisorOptions::graph")),
      coord_({.clock = options_.clock}),
      saves_(make_attempts(options_)),
      graph_defaults_(resolve(graph_, options_)) {
  if (!options_.mirror.attempts) options_.mirror.attempts = default_mirror_attempts(*options_.clock);
  if (options_.is_chief) {
    set_up_chief();
  } else {
    check_devices();
    options_.logdir.clear();
    options_.mirror.directory.clear();
    options_.save_summaries_secs = Seconds{0};
    options_.save_model_secs = Seconds{0};
  }
  tenure_ = make_tenure(options_, saves_);
  if (options_.session_manager == nullptr) own_session_manager_ = make_session_manager();
  session_manager_ = options_.session_manager != nullptr ? options_.session_manager : own_session_manager_.get();
  graph_.finalize();
  heed_preemption();
}

Supervisor::~Supervisor() {
  if (coord_.joined()) return;
  Teardown end;
  if (std::uncaught_exceptions() > 0) {
    end = Teardown(std::make_exception_ptr(AbortedError("an exception ended it before it was stopped")));
  }
  const std::exception_ptr before = end.error();
  tenure_->end(
      end, {.threads = [&] { join({.ignore_live_threads = true}); },
            .unsaved_steps = [&] { return warn_of_unsaved_steps("the end of a Supervisor that was not stopped"); }});
  if (end.error() == before) return;
  log_error("a supervisor that was not stopped had an error: {}", message_of(end.error()));
}

void Supervisor::heed_preemption() {
  if (options_.preemption != nullptr) preempted_ = options_.preemption->attach(coord_);
}

// Where there are several processes, a variable without a device would be a different one in each.
void Supervisor::check_devices() const {
  for (const Operation& op : graph_.operations()) {
    if (op.type() == "VariableV2" && op.device().empty()) {
      throw InvalidArgumentError("When using replicas, all Variables must have their device set: " + op.name());
    }
  }
}

void Supervisor::set_up_chief() {
  const std::string given = strip_file_scheme(options_.logdir);
  writes_relative_paths_ = !given.empty() && !given.starts_with('/');
  options_.logdir = absolute_directory(given);
  options_.mirror.directory = absolute_directory(options_.mirror.directory);
  if (!options_.logdir.empty()) {
    check_writable(*options_.files, options_.logdir);
    save_path_ = join_path(options_.logdir, options_.checkpoint_basename);
    if (writes_relative_paths_ && saver() != nullptr) saver()->name_relatively_in(options_.logdir);
  } else if (!options_.mirror.directory.empty()) {
    throw InvalidArgumentError("a mirror has nothing to mirror without a logdir: " + options_.mirror.directory);
  }
  if (options_.summary_writer.has_value()) {
    writer_ = options_.summary_writer.value().pointer();
  } else if (options_.summary_writer.is_default() && !options_.logdir.empty()) {
    writer_ = std::make_shared<FileWriter>(options_.logdir,
                                           FileWriterOptions{.files = options_.files, .clock = options_.clock});
  }
  graph_bytes_ = proto::serialize(to_graph_def(graph_, /*add_shapes=*/true));
  meta_graph_bytes_ = proto::serialize(saver() != nullptr ? saver()->export_meta_graph() : to_meta_graph_def(graph_));
}

std::unique_ptr<SessionManager> Supervisor::make_session_manager() const {
  return std::make_unique<SessionManager>(
      SessionManagerOptions{.graph = &graph_,
                            .local_init_op = graph_defaults_.local_init_op,
                            .ready_op = graph_defaults_.ready_op,
                            .ready_for_local_init_op = graph_defaults_.ready_for_local_init_op,
                            .initialize_missing = options_.initialize_missing,
                            .recovery_wait_secs = options_.recovery_wait_secs,
                            .local_init_run_options = options_.local_init_run_options,
                            .files = options_.files,
                            .coordinator = coord_,
                            .skip_reason = [this](const std::string& prefix) { return tenure_->skip_reason(prefix); }});
}

std::shared_ptr<Session> Supervisor::prepare_or_wait_for_session(const PrepareSessionOptions& options) {
  if (has_managed_session_) {
    throw FailedPreconditionError("managed_session() of this Supervisor runs: its body is given the session");
  }
  end_session_before();
  return prepare_again(options);
}

// Its services would save beside those of the next one.
void Supervisor::end_session_before() {
  if (!has_session_) return;
  if (should_stop()) {
    try {
      join({.ignore_live_threads = true});
    } catch (const std::exception& error) {
      log_info("the session before this one ended with an error: {}", error.what());
    }
  }
  const std::vector<std::string> threads = coord_.running();
  if (threads.empty()) return;
  throw FailedPreconditionError(
      fmt::format("this Supervisor has a session already: call stop() first. Threads that work with it: {}",
                  fmt::join(threads, ", ")));
}

std::shared_ptr<Session> Supervisor::prepare_again(const PrepareSessionOptions& options) {
  Teardown before(std::make_exception_ptr(AbortedError("another session is prepared")));
  tenure_->end(before);
  coord_.clear_stop();
  heed_preemption();
  has_session_ = false;
  session_.reset();
  start_step_.reset();
  try {
    return prepare_locked(options);
  } catch (...) {
    tenure_->failed(std::current_exception());
    throw;
  }
}

std::shared_ptr<Session> Supervisor::prepare_locked(const PrepareSessionOptions& options) {
  begin_tenure();
  if (writer_) writer_->reopen();
  std::shared_ptr<Session> session;
  if (is_chief()) {
    session = prepare_as_chief(options);
    if (saver() != nullptr) tenure_->mirror_saves_of(*saver());
    write_graph();
  } else {
    session = session_manager_->wait_for_session(options.master, options.config, options.max_wait_secs);
  }
  note_session(session);
  note_start(options.start_standard_services);
  if (!options.start_standard_services) return session;
  if (is_chief()) {
    log_debug("Starting standard services.");
    start_standard_services(session);
  }
  log_debug("Starting queue runners.");
  start_queue_runners(session);
  return session;
}

std::shared_ptr<Session> Supervisor::prepare_as_chief(const PrepareSessionOptions& options) {
  if (saver() != nullptr && !options_.logdir.empty()) report_checkpoint_costs(*saver(), options_.logdir);
  return session_manager_->prepare_session({.master = options.master,
                                            .init_op = graph_defaults_.init_op,
                                            .saver = saver(),
                                            .checkpoint_dir = options_.logdir,
                                            .mirror_dir = options_.mirror.directory,
                                            .mirror_timeout = options_.mirror.start_timeout,
                                            .checkpoint_basename = options_.checkpoint_basename,
                                            .search_directory = options_.search_directory,
                                            .wait_for_checkpoint = options.wait_for_checkpoint,
                                            .max_wait_secs = options.max_wait_secs,
                                            .config = options.config,
                                            .init_feed_dict = options_.init_feed_dict,
                                            .init_fn = options_.init_fn});
}

void Supervisor::check_is_chief() const {
  if (options_.is_chief) return;
  throw FailedPreconditionError(
      "Only chief supervisor can start standard services. Because only chief supervisors can write events.");
}

ServiceContext Supervisor::service_context(std::shared_ptr<Session> session) const {
  check_is_chief();
  if (!session) throw InvalidArgumentError("services need a session, and this is a null pointer");
  return {.coord = coord_,
          .session = std::move(session),
          .writer = writer_,
          .saver = graph_defaults_.saver,
          .summary_op = graph_defaults_.summary_op,
          .global_step = graph_defaults_.global_step,
          .save_path = save_path_,
          .relative_paths = writes_relative_paths_,
          .save_summaries_secs = options_.save_summaries_secs,
          .save_model_secs = first_interval(options_.save_model_secs),
          .saves = saves_,
          .chooses_interval = options_.save_model_secs.is_auto(),
          .journal = tenure_->journal()};
}

std::vector<std::shared_ptr<LooperThread>> Supervisor::start_standard_services(std::shared_ptr<Session> session) {
  check_is_chief();
  if (options_.logdir.empty()) {
    log_warning(
        "Standard services need a 'logdir', and SupervisorOptions::logdir is empty: no checkpoints, summaries and step "
        "counts are written, and a restart begins anew. Pass .logdir = \"runs/NAME\", or where that is meant "
        ".start_standard_services = false");
    return {};
  }
  begin_tenure();
  if (saver() != nullptr) tenure_->mirror_saves_of(*saver());
  if (!has_session_) note_session(session);
  const auto context = std::make_shared<const ServiceContext>(service_context(std::move(session)));
  std::vector<std::shared_ptr<LooperThread>> services;
  if (writer_ && context->global_step.valid()) {
    write_start(*writer_, read_global_step(*context->session, context->global_step));
    start_digests(context->session);
  }
  if (writer_ && context->save_summaries_secs > Seconds{0}) {
    if (context->summary_op.valid()) services.push_back(std::make_shared<SummaryService>(context));
    if (context->global_step.valid()) services.push_back(std::make_shared<StepCounterService>(context));
  }
  if (context->saver && context->save_model_secs > Seconds{0}) {
    services.push_back(std::make_shared<TimerCheckpointService>(context));
  }
  if (context->saver && options_.preemption != nullptr) {
    services.push_back(std::make_shared<PreemptionService>(context, *options_.preemption));
  }
  for (const auto& service : services) service->start();
  start_journal_service(context->session);
  return services;
}

void Supervisor::start_journal_service(const std::shared_ptr<Session>& session) {
  if (!tenure_->journal()) return;
  const JournalServiceOptions options{.session = session,
                                      .global_step = graph_defaults_.global_step,
                                      .journal = tenure_->journal(),
                                      .writer = writer_,
                                      .goodput_secs = options_.save_summaries_secs};
  std::make_shared<JournalService>(coord_, options)->start();
}

QueueRunnerThreads Supervisor::start_queue_runners(std::shared_ptr<Session> session) {
  return start_queue_runners(std::move(session), queue_runners(graph_));
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
  return LooperThread::loop(coord_, interval, std::move(target), "lh-loop");
}

// Threads that do not end have half of what a preemption leaves.
void Supervisor::join(const StopOptions& options) {
  request_stop();
  coord_.join({.stop_grace = options_.stop_grace_secs,
               .ignore_live_threads = options.ignore_live_threads,
               .give_up = tenure_->budget().half_is_used(coord_.clock())},
              options.threads);
}

void Supervisor::stop(const StopOptions& options) {
  TrainingEnd steps{.threads = [&] { join(options); },
                    .unsaved_steps = [&] { return warn_of_unsaved_steps("stop()"); }};
  if (options.save_checkpoint && session_) steps.last_checkpoint = [&] { save_last(session_); };
  end(std::move(steps), options.close_summary_writer);
}

// Throws the first error.
void Supervisor::end(TrainingEnd steps, bool close_summary_writer) {
  if (close_summary_writer) steps.events = [&] { close_writer(); };
  Teardown end;
  tenure_->end(end, steps);
  has_session_ = false;
  session_.reset();
  end.raise_error();
}

void Supervisor::close_session(const std::shared_ptr<Session>& session) const {
  try {
    if (session) session->close();
  } catch (const std::exception& error) {
    log_debug("closing the session: {}", error.what());
  }
}

void Supervisor::start_digests(const std::shared_ptr<Session>& session) {
  digests_.reset();
  if (options_.digest_every_n_steps == 0) return;
  digests_ = std::make_unique<WeightDigestService>(session, graph_defaults_.global_step, writer_,
                                                   options_.digest_every_n_steps);
}

void Supervisor::save_last(const std::shared_ptr<Session>& session) {
  if (!can_save()) return;
  const ServiceContext context = service_context(session);
  save_final_checkpoint(save_target(context), *session, tenure_->budget());
}

void Supervisor::managed_session(const std::function<void(Session&)>& body, const ManagedSessionOptions& options) {
  const ManagedSessionTurn turn(has_managed_session_);
  end_session_before();
  std::shared_ptr<Session> session;
  coord_.clear_stop();
  stop_on_exception([&] {
    session = prepare_again({.master = options.master,
                             .config = options.config,
                             .start_standard_services = options.start_standard_services});
    body(*session);
  });
  end({.threads = [&] { join(); },
       .last_checkpoint =
           [&] {
             if (options_.save_at_end && session) save_last(session);
           },
       .session = [&] { close_session(session); }},
      options.close_summary_writer);
}

void Supervisor::wait_for_stop() const {
  constexpr Seconds kLong{3600};
  while (!coord_.wait_for_stop(kLong)) {
  }
}

void Supervisor::summary_computed(Session& session, std::string_view summary, std::optional<int64_t> global_step) {
  if (!writer_) throw FailedPreconditionError("Writing a summary requires a summary writer.");
  if (!global_step && graph_defaults_.global_step.valid()) {
    global_step = read_global_step(session, graph_defaults_.global_step);
  }
  writer_->add_summary(summary, global_step.value_or(0));
}

void Supervisor::summary_computed(Session& session, const Tensor& summary, std::optional<int64_t> global_step) {
  summary_computed(session, summary.item<std::string>(), global_step);
}

void Supervisor::summary_computed(Session& session, const proto::Summary& summary, std::optional<int64_t> global_step) {
  summary_computed(session, summary.SerializeAsString(), global_step);
}

}  // namespace longhaul
