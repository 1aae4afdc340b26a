#include "longhaul/train/sessions/session_manager.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/session/model_reset.h"
#include "longhaul/session/model_watch.h"
#include "longhaul/train/recovery/fall_back.h"
#include "longhaul/train/recovery/recovered_list.h"
#include "longhaul/train/recovery/recovery_search.h"
#include "longhaul/train/sessions/join_training.h"
#include "longhaul/train/sessions/missing_variables.h"
#include "longhaul/train/sessions/mixed_model.h"
#include "longhaul/train/sessions/readiness.h"
#include "longhaul/train/sessions/stop_ends_waits.h"

namespace longhaul {
namespace {

void run_all(Session& session, const OpList& ops, const Feeds& feeds = {}, const RunOptions& run_options = {}) {
  std::vector<Fetch> fetches;
  for (const Operation& op : ops.operations()) fetches.emplace_back(op);
  if (!fetches.empty()) session.run(fetches, feeds, run_options);
}

void close_quietly(Session& session) {
  try {
    session.close();
  } catch (const Error& error) {
    log_warning("an abandoned session could not be closed: {}", error.what());
  }
}

// A limit that is over does not mean a lost session, after which one would begin anew.
template <typename Body>
auto within(std::optional<Seconds> max_wait_secs, Clock& clock, Body&& body) {
  const Seconds start = clock.now();
  try {
    return body();
  } catch (const UnavailableError& error) {
    if (!max_wait_secs || clock.now() < start + *max_wait_secs) throw;
    throw DeadlineExceededError(
        fmt::format("Session was not ready after waiting {:g} secs. {}", max_wait_secs->count(), error.what()));
  }
}

// What changes the readiness of a model on servers. Without it, all looks are due to the time that passes.
class ReadinessChanges {
 public:
  ReadinessChanges(Session& session, const Coordinator& coord) : coord_(coord) {
    if (ModelWatching* const watching = session.capabilities().model_watching)
      watch_ = watching->watch_model([coord] { coord.notify(); });
  }

  // False: a stop was requested.
  bool wait(Seconds at_most) {
    // wait: polls: another process makes the model; where servers tell of its changes, they notify
    return !coord_.wait_for_stop_or([this] { return watch_ != nullptr && watch_->take_change(); }, at_most);
  }

 private:
  const Coordinator coord_;
  std::unique_ptr<ModelWatch> watch_;  // null: there is none
};

// Says what a wait is for, at most once a second: a chief that initialises its model changes that many times at once.
// What is left out is said if the wait ends without success.
class WaitReport {
 public:
  explicit WaitReport(const Clock& clock) : clock_(clock) {}

  void note(std::string text) {
    constexpr Seconds kBetween{1};
    unsaid_ = std::move(text);
    const Seconds now = clock_.now();
    if (said_at_ && now - *said_at_ < kBetween) return;
    said_at_ = now;
    say_last();
  }
  void say_last() {
    if (!unsaid_.empty()) log_info("{}", std::exchange(unsaid_, {}));
  }

 private:
  const Clock& clock_;
  std::optional<Seconds> said_at_;
  std::string unsaid_;
};

// Null for a session of this process, which waits for no task.
std::unique_ptr<StopEndsWaits> heed_stop(const std::string& master, const std::shared_ptr<Session>& session,
                                         const Coordinator& coordinator) {
  return master.empty() ? nullptr : std::make_unique<StopEndsWaits>(session, coordinator);
}

// A model that its servers have kept wins over the directory, but for one that is older than what was saved from there:
// it would be saved over that.
void check_for_other_model(int64_t step, const std::string& directory, const std::vector<std::string>& candidates,
                           const std::function<bool(const std::string&)>& is_skipped) {
  constexpr const char* kOtherwise = "end the servers, or reset them (Session::reset), and start again";
  if (candidates.empty()) {
    log_warning(
        "the servers have a model at step {}, but {} has no checkpoint: it may be that of another training. To begin "
        "anew, {}",
        step, directory, kOtherwise);
    return;
  }
  for (const std::string& candidate : candidates) {
    if (is_skipped && is_skipped(candidate)) continue;
    const auto newest = split_step(candidate).step;
    if (!newest || *newest <= step) return;
    throw FailedPreconditionError(fmt::format(
        "the servers have a model at step {}, which is older than the newest checkpoint, {}: it is that of another "
        "training, or of an earlier start. To continue from the checkpoint, {}; to continue with the model of the "
        "servers, use another logdir, or move the newer checkpoints away",
        step, candidate, kOtherwise));
  }
}

// Takes a session for it, which the reset ends.
void drop_model(const std::shared_ptr<Session>& session, const std::string& master,
                const SessionManagerOptions& options) {
  constexpr Seconds kLongestReset{10};
  ModelReset* const servers = session->capabilities().model_reset;
  const auto stop = heed_stop(master, session, options.coordinator);
  try {
    if (servers != nullptr) {
      if (!options.ready_op.valid()) {
        throw FailedPreconditionError(
            "the model on the servers has to go back to a checkpoint, but without a ready_op the other workers would "
            "not wait for it: leave SupervisorOptions::ready_op, or Scaffold's, at its default");
      }
      model_is_there(*session, options.ready_op);  // asks the tasks of its variables
      log_warning("the loss of the model that the servers have went bad: the model is dropped, on all of them");
      servers->reset_model(kLongestReset);
    }
    if (stop) stop->finish();
  } catch (...) {
    close_quietly(*session);
    throw;
  }
  close_quietly(*session);
}

constexpr Seconds kForever{1e9};

constexpr const char* kNobodyElse =
    " No other process can initialise the model of a session in this one (master \"\"): pass the target of a server, "
    "or be the chief";

const std::string kNoChief =
    " The chief makes the model ready: does a task run with is_chief = true, and do all create the same variables, in "
    "the same order? The last look: ";

// After which a chief that is at work would have made the model ready.
constexpr Seconds kLongWait{25};

// A chief that trains a model with other variables does not make this program's ready, ever.
void warn_of_other_variables(Session& session, const Readiness& ready) {
  const std::optional<Variable> step = ops::get_global_step(session.graph());
  if (!step || ready.missing.empty()) return;
  const std::string name = step->ref().op().name();
  if (std::find(ready.missing.begin(), ready.missing.end(), name) != ready.missing.end()) return;
  log_warning(
      "the servers have a model at step {}, but not {} of this program: either a server was started anew and the chief "
      "has not restored it yet, or this program has other variables than the chief's. All programs of a training "
      "create the same ones, in the same order",
      session.run(*step).item<int64_t>(), first_names(ready.missing));
}

constexpr const char* kNotInCheckpoint =
    ". {} does not have them: save them, or set initialize_missing to run their initializers";

// Whoever meant to resume, and named another directory, sees it here.
void report_fresh_start(FileSystem& files, const PrepareOptions& options) {
  if (options.saver == nullptr || options.checkpoint_dir.empty()) return;
  if (checkpoint_exists(files, options.checkpoint_dir)) {
    log_warning("{} is the prefix of a checkpoint, not a directory: pass the directory that it is in to resume from it",
                options.checkpoint_dir);
  }
  log_info("{} has no checkpoint to resume from: the model is initialised", options.checkpoint_dir);
}

std::string init_text(const PrepareOptions& options, const OpList& local_init_op) {
  return fmt::format("init_op: {}, init_fn: {}, local_init_op: {}", options.init_op.names(),
                     options.init_fn ? "given" : "none", local_init_op.names());
}

}  // namespace

std::string OpList::names() const {
  if (operations_.empty()) return "none";
  std::vector<std::string> names;
  for (const Operation& op : operations_) names.push_back(op.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

SessionManager::SessionManager(SessionManagerOptions options)
    : options_(std::move(options)), graph_(Graph::or_default(options_.graph, "SessionManagerOptions::graph")) {
  if (options_.ready_for_local_init_op.valid() && options_.local_init_op.empty()) {
    throw InvalidArgumentError("If you pass a ready_for_local_init_op you must also pass a local_init_op");
  }
}

std::shared_ptr<Session> SessionManager::make_session(const std::string& master, SessionOptions config,
                                                      std::optional<Seconds> max_wait_secs) const {
  if (!config.task_wait) config.task_wait = max_wait_secs.value_or(kForever);
  if (options_.session_factory) return options_.session_factory(master, graph_, config);
  return new_session(master, graph_, config);
}

std::shared_ptr<Session> SessionManager::prepare_session(const PrepareOptions& options) {
  check_checkpoint_arguments(options);
  return within(options.max_wait_secs, options_.coordinator.clock(), [&] { return make_ready(options); });
}

std::shared_ptr<Session> SessionManager::make_ready(const PrepareOptions& options) {
  const auto make = [&] { return make_session(options.master, options.config, options.max_wait_secs); };
  const bool drops = !options.master.empty() && options_.drops_model && options_.drops_model();
  if (drops) drop_model(make(), options.master, options_);
  std::shared_ptr<Session> session = make();
  const auto stop = heed_stop(options.master, session, options_.coordinator);
  try {
    if (!take_or_restore(*session, options)) {
      report_fresh_start(*options_.files, options);
      initialize(*session, options);
    }
    initialize_missing(*session, options);
    check_initialized(*session, options);
    if (!restored_from_.empty()) log_info("Restored model from {}", restored_from_);
    if (stop) stop->finish();
  } catch (...) {
    close_quietly(*session);
    throw;
  }
  return session;
}

RecoveredSession SessionManager::recover_session(const PrepareOptions& options) {
  check_checkpoint_arguments(options);
  RecoveredSession recovered{make_session(options.master, options.config, options.max_wait_secs)};
  const bool has_model = take_or_restore(*recovered.session, options);
  initialize_missing(*recovered.session, options);
  const Readiness local = try_local_init(*recovered.session);
  if (!has_model) return recovered;
  const Readiness ready = local.ready ? check_ready(*recovered.session, options_.ready_op) : local;
  recovered.initialized = ready.ready;
  if (restored_from_.empty()) return recovered;
  if (ready.ready) {
    log_info("Restored model from {}", restored_from_);
  } else {
    log_info("Restoring model from {} did not make model ready{}: {}", restored_from_,
             local.ready ? "" : " for local init", ready.why);
  }
  return recovered;
}

void SessionManager::check_checkpoint_arguments(const PrepareOptions& options) {
  if (!options.checkpoint_dir.empty() && !options.checkpoint_filename_with_path.empty()) {
    throw InvalidArgumentError("Can not provide both checkpoint_dir and checkpoint_filename_with_path: " +
                               options.checkpoint_dir + ", " + options.checkpoint_filename_with_path);
  }
}

// A model that is ready has gone on since its last checkpoint: it is not set back to it.
bool SessionManager::take_or_restore(Session& session, const PrepareOptions& options) {
  restored_from_.clear();
  if (options.saver != nullptr) options.saver->forget_last_saved();
  found_model_ = model_is_there(session, options_.ready_op);
  if (found_model_) {
    log_info("The model is already initialised: nothing is restored.");
    manage_checkpoints_of_directory(options, join_training(session));
    return true;
  }
  if (!options.master.empty()) check_no_other_program_has_model(session, options_.ready_op);
  if (options.wait_for_checkpoint) wait_for_checkpoint(options);
  return restore(session, options);
}

// `step`: of the model that the servers have; nullopt: there are none.
void SessionManager::manage_checkpoints_of_directory(const PrepareOptions& options, std::optional<int64_t> step) const {
  if (options.saver == nullptr || options.checkpoint_dir.empty()) return;
  FallBackOptions own = fall_back_options(options);
  own.mirror.directory.clear();
  const std::vector<std::string> candidates = search_for_recovery(own).candidates;
  if (step && ops::get_global_step(graph_))
    check_for_other_model(*step, options.checkpoint_dir, candidates, options_.is_skipped);
  if (candidates.empty()) return;
  recover_checkpoint_list(*options.saver, *options_.files, options.checkpoint_dir, {.restored = candidates.front()});
}

bool SessionManager::restore(Session& session, const PrepareOptions& options) {
  if (options.saver == nullptr) return false;
  if (!options.checkpoint_dir.empty()) {
    // One that is locked and not there has no checkpoint to tell: nothing is initialised in its place.
    check_directory_owner(*options_.files, join_path(strip_file_scheme(options.checkpoint_dir), kDefaultStateFile));
    return restore_newest(session, options);
  }
  if (options.checkpoint_filename_with_path.empty()) return false;
  options.saver->restore(session, options.checkpoint_filename_with_path);
  restored_from_ = options.checkpoint_filename_with_path;
  return true;
}

// Whoever did not mean to begin anew sees what is there.
void SessionManager::warn_of_skipped(const PrepareOptions& options) const {
  const std::vector<std::string> there =
      checkpoint_candidates(*options_.files, options.checkpoint_dir, options.checkpoint_basename);
  if (there.empty()) return;
  log_warning(
      "There is no {}, and search_directory is off: training starts from scratch, although {} exists. Its files are "
      "replaced when a new checkpoint gets the same name",
      join_path(strip_file_scheme(options.checkpoint_dir), kDefaultStateFile), there.front());
}

// Only what the state file lists counts, and there is none.
bool SessionManager::begins_anew(const PrepareOptions& options) const {
  return !options.recovery.search_directory &&
         listed_prefixes(*options_.files, strip_file_scheme(options.checkpoint_dir)).empty();
}

bool SessionManager::restore_newest(Session& session, const PrepareOptions& options) {
  if (begins_anew(options)) {
    warn_of_skipped(options);
    return false;
  }
  const FallBack fall_back = restore_newest_intact(*options.saver, session, fall_back_options(options));
  if (!fall_back.restored) return false;
  restored_from_ = *fall_back.restored;
  recover_checkpoint_list(*options.saver, *options_.files, options.checkpoint_dir, fall_back);
  return true;
}

FallBackOptions SessionManager::fall_back_options(const PrepareOptions& options) const {
  return {.files = options_.files,
          .directory = options.checkpoint_dir,
          .mirror = {strip_file_scheme(options.mirror.directory), options.mirror.start_timeout},
          .deadline = options.deadline,
          .basename = options.checkpoint_basename,
          .skip_reason = options_.skip_reason,
          .recovery = options.recovery};
}

void SessionManager::wait_for_checkpoint(const PrepareOptions& options) const {
  if (options.saver == nullptr || options.checkpoint_dir.empty()) return;
  const Seconds start = options_.coordinator.clock().now();
  const auto is_there = [&] {
    return !begins_anew(options) && !search_for_recovery(fall_back_options(options)).candidates.empty();
  };
  while (!is_there()) {
    const Seconds waited = options_.coordinator.clock().now() - start;
    if (options.max_wait_secs && waited >= *options.max_wait_secs) return;
    log_info("Waiting for checkpoint to be available in {}.", options.checkpoint_dir);
    wait(next_wait(options.max_wait_secs, waited), "a checkpoint in " + options.checkpoint_dir);
  }
}

// Until the next look, or the deadline where that is sooner.
Seconds SessionManager::next_wait(std::optional<Seconds> max_wait_secs, Seconds waited) const {
  constexpr Seconds kShortest{0.001};  // recovery_wait_secs may be 0, and a difference too small to move a clock
  const Seconds look = options_.recovery_wait_secs;
  return std::max(kShortest, max_wait_secs ? std::min(look, *max_wait_secs - waited) : look);
}

void SessionManager::wait(Seconds time, const std::string& for_what) const {
  // wait: polls: another process makes the checkpoint, and notifies nobody
  if (options_.coordinator.wait_for_stop(time)) throw CancelledError("stopped while waiting for " + for_what);
}

void SessionManager::initialize(Session& session, const PrepareOptions& options) const {
  if (options.init_op.empty() && !options.init_fn && options_.local_init_op.empty()) {
    throw FailedPreconditionError(
        "Model is not initialized and no init_op or init_fn or local_init_op was given, and there is no checkpoint to "
        "restore");
  }
  run_all(session, options.init_op, options.init_feed_dict);
  if (options.init_fn) options.init_fn(session);
  warn_of_missing(options);
}

void SessionManager::initialize_missing(Session& session, const PrepareOptions& options) const {
  if (!options.recovery.initialize_missing || restored_from_.empty()) return;
  const std::vector<std::string> names = longhaul::initialize_missing(session, readiness_ops(), options.init_feed_dict);
  if (!names.empty())
    log_info("{} does not have these variables, so their initializers ran: {}", restored_from_, first_names(names));
}

void SessionManager::warn_of_missing(const PrepareOptions& options) const {
  if (options.saver == nullptr || options.checkpoint_dir.empty() || options.recovery.initialize_missing) return;
  warn_of_missing_after_restore(missing_after_restore(graph_, *options.saver, readiness_ops()));
}

ReadinessOps SessionManager::readiness_ops() const {
  return {options_.ready_op, options_.ready_for_local_init_op, options_.local_init_op.operations()};
}

void SessionManager::check_initialized(Session& session, const PrepareOptions& options) const {
  const std::string what = init_text(options, options_.local_init_op);
  const std::string hint = restored_from_.empty() ? "" : fmt::format(kNotInCheckpoint, restored_from_);
  const Readiness local = try_local_init(session);
  if (!local.ready) {
    throw FailedPreconditionError(
        fmt::format("Init operations did not make model ready for local_init. {}, error: {}{}", what, local.why, hint));
  }
  const Readiness ready = check_ready(session, options_.ready_op);
  if (!ready.ready) {
    throw FailedPreconditionError(
        fmt::format("Init operations did not make model ready. {}, error: {}{}", what, ready.why, hint));
  }
}

Readiness SessionManager::try_local_init(Session& session) const {
  if (options_.local_init_op.empty()) return {};
  Readiness ready = check_ready(session, options_.ready_for_local_init_op);
  if (ready.ready) run_all(session, options_.local_init_op, {}, options_.local_init_run_options);
  return ready;
}

std::shared_ptr<Session> SessionManager::wait_for_session(const std::string& master, const SessionOptions& config,
                                                          std::optional<Seconds> max_wait_secs) {
  restored_from_.clear();
  return within(max_wait_secs, options_.coordinator.clock(), [&] {
    std::shared_ptr<Session> session = make_session(master, config, max_wait_secs);
    const auto stop = heed_stop(master, session, options_.coordinator);
    try {
      wait_until_ready(*session, master, max_wait_secs);
      join_training(*session);
      if (stop) stop->finish();
    } catch (...) {
      close_quietly(*session);
      throw;
    }
    return session;
  });
}

void SessionManager::wait_until_ready(Session& session, const std::string& master,
                                      std::optional<Seconds> max_wait_secs) const {
  const Clock& clock = options_.coordinator.clock();
  const Seconds start = clock.now();
  ReadinessChanges changes(session, options_.coordinator);
  WaitReport report(clock);
  bool has_warned = false;
  while (true) {
    const Readiness ready = look(session);
    if (ready.ready) return;
    report.note(ready.why);
    const Seconds waited = clock.now() - start;
    if (waited >= kLongWait && !std::exchange(has_warned, true)) warn_of_other_variables(session, ready);
    if (max_wait_secs && waited >= *max_wait_secs) {
      report.say_last();
      throw DeadlineExceededError(fmt::format("Session was not ready after waiting {:g} secs.{}",
                                              max_wait_secs->count(),
                                              master.empty() ? kNobodyElse : kNoChief + ready.why));
    }
    if (!changes.wait(next_wait(max_wait_secs, waited))) {
      report.say_last();
      throw CancelledError("stopped while waiting for the chief to initialise the model");
    }
  }
}

// If it is not ready, `why` is a line for the log.
Readiness SessionManager::look(Session& session) const {
  const Readiness local = try_local_init(session);
  Readiness ready = local.ready ? check_ready(session, options_.ready_op) : Readiness{false, "not tried"};
  if (ready.ready) return ready;
  if (ready.missing.empty()) ready.missing = local.missing;
  ready.why = fmt::format("Waiting for model to be ready.  Ready_for_local_init_op: {}, ready: {}",
                          local.ready ? "yes" : local.why, ready.why);
  return ready;
}

}  // namespace longhaul
