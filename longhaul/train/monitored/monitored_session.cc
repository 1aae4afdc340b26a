#include "longhaul/train/monitored/monitored_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/train/coordination/lost_session.h"
#include "longhaul/train/coordination/teardown.h"
#include "longhaul/train/divergence/divergence_options.h"
#include "longhaul/train/hooks/checkpoint_saver_hook.h"
#include "longhaul/train/hooks/hang_watch_hook.h"
#include "longhaul/train/hooks/hook_call.h"
#include "longhaul/train/hooks/journal_hook.h"
#include "longhaul/train/hooks/status_hook.h"
#include "longhaul/train/monitored/coordinated_session.h"
#include "longhaul/train/sessions/end_training.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {
namespace {

MonitoredSessionOptions with_creator(MonitoredSessionOptions options) {
  if (!options.session_creator) {
    options.session_creator =
        std::make_shared<ChiefSessionCreator>(ChiefSessionCreatorOptions{.coordinator = options.coordinator});
  }
  return options;
}

MonitoredSessionOptions with_creator(const SingularMonitoredSessionOptions& options) {
  return {.session_creator = std::make_shared<ChiefSessionCreator>(
              ChiefSessionCreatorOptions{.graph = options.graph,
                                         .scaffold = options.scaffold,
                                         .master = options.master,
                                         .config = options.config,
                                         .checkpoint_dir = options.checkpoint_dir,
                                         .checkpoint_filename_with_path = options.checkpoint_filename_with_path,
                                         .recovery = options.recovery,
                                         .files = options.files,
                                         .coordinator = options.coordinator}),
          .hooks = options.hooks,
          .stop_grace_period_secs = options.stop_grace_period_secs,
          .coordinator = options.coordinator};
}

std::shared_ptr<ChiefTenure> tenure_or_none(const MonitoredSessionOptions& options) {
  return options.tenure ? options.tenure
                        : std::make_shared<ChiefTenure>(ChiefTenureOptions{.chief = {.preemption = options.preemption},
                                                                           .clock = &options.coordinator.clock()});
}

// What `body` throws; null: it ends well.
template <typename Body>
std::exception_ptr error_of(const Body& body) {
  try {
    body();
  } catch (const OutOfRangeError& end) {
    log_info("training reached the end of its input: {}", end.what());
  } catch (const StopIteration& stop) {
    log_info("training stops: {}", stop.what());
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

void begin_hooks(const SessionRunHooks& hooks, Graph& graph, Preemption* preemption) {
  for (const auto& hook : hooks) {
    if (!hook) throw InvalidArgumentError("the list of hooks has a null pointer");
    if (auto* saver = dynamic_cast<CheckpointSaverHook*>(hook.get())) saver->preempted_by(preemption);
    call_hook(*hook, "begin", [&] { hook->begin(graph); });
  }
}

// What the last checkpoint waits for. Null: no hook saves.
std::shared_ptr<FileWriter> events_of_saver(const SessionRunHooks& hooks) {
  for (const auto& hook : hooks) {
    const auto* saver = dynamic_cast<const CheckpointSaverHook*>(hook.get());
    if (saver != nullptr) return saver->events();
  }
  return nullptr;
}

// For those of the hook that takes the last checkpoint, which may be made by hand; else for the tenure's.
void limit_waits_for_events(ChiefTenure& tenure, const SessionRunHooks& hooks) {
  if (auto events = events_of_saver(hooks)) return tenure.limit_waits_for_events(std::move(events));
  tenure.limit_waits_for_events();
}

// Null: there was none.
void close_lost(std::unique_ptr<CoordinatedSession> session) {
  const std::exception_ptr error = session ? session->close() : nullptr;
  if (error && !may_be_made_later(error)) std::rethrow_exception(error);
}

// Or its chief does.
bool takes_checkpoints(const MonitoredSessionOptions& options) {
  if (dynamic_cast<const WorkerSessionCreator*>(options.session_creator.get()) != nullptr) return true;
  return std::any_of(options.hooks.begin(), options.hooks.end(),
                     [](const auto& hook) { return dynamic_cast<const CheckpointSaverHook*>(hook.get()) != nullptr; });
}

// Those that the hook has left that saved most.
std::optional<UnsavedSteps> count_unsaved_steps(const SessionRunHooks& hooks, Session& session, bool after_error) {
  std::vector<std::optional<UnsavedSteps>> left;
  for (const auto& hook : hooks) {
    const auto* saver = dynamic_cast<const CheckpointSaverHook*>(hook.get());
    if (saver != nullptr) left.push_back(saver->count_unsaved_steps(session, after_error));
  }
  const auto share = [](const std::optional<UnsavedSteps>& steps) { return steps ? steps->share : 0; };
  const auto least = std::min_element(left.begin(), left.end(), [&](auto& a, auto& b) { return share(a) < share(b); });
  return least == left.end() ? std::nullopt : *least;
}

void stop_watching_for_hangs(const SessionRunHooks& hooks) {
  for (const auto& hook : hooks) {
    if (auto* watch = dynamic_cast<HangWatchHook*>(hook.get())) watch->end_watch();
  }
}

void note_interruption(const SessionRunHooks& hooks, Session& session) {
  for (const auto& hook : hooks) {
    if (auto* journal = dynamic_cast<JournalHook*>(hook.get())) journal->interrupted(session);
    if (auto* status = dynamic_cast<StatusHook*>(hook.get())) status->interrupted();
  }
}

// A worker does not, and a preempted chief is restarted.
bool ends_training(const MonitoredSessionOptions& options) {
  const bool is_worker = dynamic_cast<const WorkerSessionCreator*>(options.session_creator.get()) != nullptr;
  return !is_worker && (options.preemption == nullptr || !options.preemption->is_preempted());
}

bool is_run_after_stop(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const RunAfterStopError&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

MonitoredSession::MonitoredSession(MonitoredSessionOptions options)
    : MonitoredSession(with_creator(std::move(options)), Recovery::kReplaceLost) {}

MonitoredSession::MonitoredSession(MonitoredSessionOptions options, Recovery recovery)
    : options_(std::move(options)),
      stops_(options_.coordinator.child({.clock = &options_.coordinator.clock()})),
      tenure_(tenure_or_none(options_)),
      recovers_(recovery == Recovery::kReplaceLost),
      graph_was_finalized_(graph().finalized()),
      restarts_(options_.restart, stops_) {
  tenure_->take();
  if (options_.preemption == nullptr) {
    Preemption::warn_of_unused();
  } else {
    preempted_ = options_.preemption->attach(options_.coordinator, takes_checkpoints(options_));
  }
  try {
    tenure_->begin([stops = stops_](const std::exception_ptr& error) { stops.request_stop(error); });
    begin_hooks(options_.hooks, graph(), options_.preemption);
    limit_waits_for_events(*tenure_, options_.hooks);
    if (const std::exception_ptr error = try_to_create()) replace(error);
  } catch (...) {
    std::rethrow_exception(shut_down(std::current_exception()));
  }
}

MonitoredSession::~MonitoredSession() {
  if (closed_) return;
  const auto not_closed = std::make_exception_ptr(AbortedError("a monitored session was not closed"));
  const std::exception_ptr error = shut_down(not_closed);
  if (error == not_closed) return;
  log_error("a monitored session that was not closed ended with an error: {}", message_of(error));
}

// Null also when a stop has ended what was waited for: there is no session then.
std::exception_ptr MonitoredSession::try_to_create() {
  try {
    auto session = std::make_unique<CoordinatedSession>(options_.session_creator->create_session(), options_.hooks,
                                                        stops_, options_.stop_grace_period_secs, tenure_->budget());
    session->start();
    current_ = std::move(session);
    restarts_.session_begins();
  } catch (const CancelledError& error) {
    if (!stops_.should_stop()) return std::current_exception();
    log_info("training stops before it has a session: {}", error.what());
  } catch (...) {
    return std::current_exception();
  }
  return nullptr;
}

// Without a current session, `cause` is why none could be made.
bool MonitoredSession::may_replace(const std::exception_ptr& cause) const {
  return recovers_ && (current_ ? is_lost_session(cause) : may_be_made_later(cause));
}

// There is another session afterwards, or none because a stop was requested. Throws what stands against it.
void MonitoredSession::replace(std::exception_ptr cause) {
  while (cause) {
    if (!may_replace(cause)) std::rethrow_exception(cause);
    const std::exception_ptr reported = current_ ? current_->reported_error() : nullptr;
    stop_watching_for_hangs(options_.hooks);
    if (current_) note_interruption(options_.hooks, current_->session());
    close_lost(std::move(current_));
    if (is_rollback(cause)) {
      if (stops_.should_stop()) return;
    } else {
      if (!restarts_.session_lost(message_of(cause), reported)) std::rethrow_exception(cause);
      if (!restarts_.wait_for_next()) return;
    }
    cause = try_to_create();
  }
}

CoordinatedSession& MonitoredSession::open_session() const {
  if (current_) return *current_;
  if (!closed_ && stops_.should_stop()) throw StopIteration("a stop was requested before there was a session");
  throw FailedPreconditionError("Session is already closed.");
}

template <typename Attempt>
auto MonitoredSession::with_session(const Attempt& attempt) {
  if (hook_stop_) throw RunAfterStopError();
  bool is_committed = false;  // the run under way, by a session that was lost
  while (true) {
    tenure_->raise_if_lost();
    CoordinatedSession& session = open_session();
    if (is_committed) session.complete_next_run();
    std::exception_ptr cause;
    LostRun lost;
    try {
      return attempt(session);
    } catch (const StopIteration&) {
      throw;
    } catch (...) {
      cause = session.cause_of(std::current_exception());
      lost = session.lost_run();
    }
    if (!is_rollback(cause)) hook_stop_ |= session.stop_requested();  // else the steps up to it are made again
    replace(cause);
    if (!is_rollback(cause)) is_committed |= current_ && was_committed(lost);
  }
}

std::vector<Tensor> MonitoredSession::run_args(const SessionRunArgs& args, std::span<const Tensor* const> feed_values,
                                               proto::RunMetadata* metadata) {
  std::optional<std::vector<Tensor>> bad;  // of a run whose loss was bad, and whose step the model has not any more
  return with_session([&](CoordinatedSession& session) {
    if (bad) return *std::move(bad);
    try {
      return session.run(args, feed_values, metadata);
    } catch (const RollBackError&) {
      bad = session.lost_run().results;
      throw;
    }
  });
}

std::vector<Tensor> MonitoredSession::run_fetches(const Feeds& feeds, const RunOptions& options,
                                                  proto::RunMetadata* metadata) {
  args_.feeds = feeds;
  args_.options = options;
  std::vector<Tensor> results = run_args(args_, {}, metadata);
  args_.feeds.clear();
  return results;
}

Tensor MonitoredSession::run(const Fetch& fetch, const Feeds& feeds, const RunOptions& options,
                             proto::RunMetadata* metadata) {
  args_.fetches.assign(1, fetch);
  return std::move(run_fetches(feeds, options, metadata)[0]);
}

std::vector<Tensor> MonitoredSession::run(const std::vector<Fetch>& fetches, const Feeds& feeds,
                                          const RunOptions& options, proto::RunMetadata* metadata) {
  args_.fetches = fetches;
  return run_fetches(feeds, options, metadata);
}

MonitoredCallable MonitoredSession::make_callable(const Fetch& fetch, const std::vector<Fetch>& feeds) {
  return make_callable(std::vector<Fetch>{fetch}, feeds);
}

MonitoredCallable MonitoredSession::make_callable(const std::vector<Fetch>& fetches, const std::vector<Fetch>& feeds) {
  return MonitoredCallable(*this, fetches, feeds);
}

void MonitoredSession::do_step(const std::function<void(StepContext&)>& step_fn) {
  with_session([&](CoordinatedSession& session) {
    StepContext context(session);
    step_fn(context);
  });
}

bool MonitoredSession::should_stop() {
  if (!current_ || hook_stop_ || current_->stop_requested() || stops_.should_stop()) return true;
  if (!current_->threads_should_stop()) return false;
  const std::exception_ptr error = current_->reported_error();
  if (!may_replace(error)) return true;
  replace(error);
  return current_ == nullptr;
}

void MonitoredSession::monitor(const std::function<void()>& body) {
  std::exception_ptr error = error_of(body);
  if (!closed_) return finish(error);
  if (!error) throw FailedPreconditionError("Session is already closed.");
  std::rethrow_exception(error);
}

void MonitoredSession::close() {
  if (!closed_) finish(nullptr);
}

void MonitoredSession::finish(const std::exception_ptr& error) {
  if (const std::exception_ptr first = shut_down(error)) std::rethrow_exception(first);
}

// Returns the error that is to come out. A run that came too late has changed nothing: all before it has ended well.
std::exception_ptr MonitoredSession::shut_down(const std::exception_ptr& error) {
  closed_ = true;
  stop_watching_for_hangs(options_.hooks);
  std::unique_ptr<CoordinatedSession> last;
  Teardown end(is_run_after_stop(error) ? nullptr : error);
  tenure_->end(end, {.hooks =
                         [&] {
                           if (current_ && !stops_.reported_error()) current_->end_hooks();
                         },
                     .threads =
                         [&] {
                           last = std::move(current_);
                           stop_threads(end, last.get());
                         },
                     .unsaved_steps =
                         [&] {
                           const bool is_error = end.error() != nullptr;
                           return last ? count_unsaved_steps(options_.hooks, last->session(), is_error) : std::nullopt;
                         },
                     .session =
                         [&] {
                           if (last && !end.error() && ends_training(options_)) tell_end_of_training(last->session());
                           end.step("the session", [&] {
                             if (last) last->close();
                           });
                           last.reset();
                           if (!graph_was_finalized_) graph().unfinalize();
                         }});
  return end.error() ? end.error() : error;
}

// What a thread has reported outranks the error so far, which may be what followed from it, and the loss of the
// directory both.
void MonitoredSession::stop_threads(Teardown& end, CoordinatedSession* last) const {
  const std::exception_ptr of_thread = last != nullptr ? last->stop_threads() : nullptr;
  if (may_replace(of_thread)) {
    log_warning("a thread reported that the session was lost, but it is being closed anyway: {}",
                message_of(of_thread));
  } else {
    end.outrank(of_thread);
  }
  end.outrank(stops_.reported_error());
}

MonitoredCallable::MonitoredCallable(MonitoredSession& session, const std::vector<Fetch>& fetches,
                                     const std::vector<Fetch>& feeds)
    : session_(&session) {
  const auto resolved = [&](const Fetch& fetch) {
    const Fetch::Target target = fetch.resolve(session.graph());
    return target.is_operation() ? Fetch(target.op) : Fetch(target.output());
  };
  for (const Fetch& fetch : fetches) args_.fetches.push_back(resolved(fetch));
  for (const Fetch& feed : feeds) args_.feeds.emplace_back(resolved(feed), Tensor());
}

std::vector<Tensor> MonitoredCallable::call(std::span<const Tensor* const> feeds) {
  if (feeds.size() != args_.feeds.size()) {
    throw InvalidArgumentError(
        fmt::format("this callable takes {} feeds, but was given {}", args_.feeds.size(), feeds.size()));
  }
  return session_->run_args(args_, feeds, nullptr);
}

SingularMonitoredSession::SingularMonitoredSession(SingularMonitoredSessionOptions options)
    : MonitoredSession(with_creator(std::move(options)), Recovery::kThrowLost) {}

Session* SingularMonitoredSession::raw_session() const {
  return current() != nullptr ? &current()->session() : nullptr;
}

}  // namespace longhaul
