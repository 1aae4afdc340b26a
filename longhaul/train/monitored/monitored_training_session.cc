#include "longhaul/train/monitored/monitored_training_session.h"

#include <fmt/format.h>

#include "longhaul/base/log.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/train/coordination/checked_options.h"
#include "longhaul/train/hooks/checkpoint_saver_hook.h"
#include "longhaul/train/hooks/divergence_hook.h"
#include "longhaul/train/hooks/hang_watch_hook.h"
#include "longhaul/train/hooks/journal_hook.h"
#include "longhaul/train/hooks/progress_hook.h"
#include "longhaul/train/hooks/status_hook.h"
#include "longhaul/train/hooks/step_counter_hook.h"
#include "longhaul/train/hooks/summary_saver_hook.h"
#include "longhaul/train/tenure/chief_tenure.h"

namespace longhaul {
namespace {

TimerInterval interval_of(const Defaulted<Seconds>& secs, const Defaulted<int64_t>& steps,
                          const TimerInterval& by_default) {
  if (secs.is_default() && steps.is_default()) return by_default;
  TimerInterval interval;
  if (secs.has_value() && secs.value() > Seconds{0}) interval.every_secs = secs.value();
  if (steps.has_value() && steps.value() > 0) interval.every_steps = steps.value();
  return interval;
}

bool is_auto(const Defaulted<SaveInterval>& secs) {
  return secs.has_value() && secs.value().is_auto();
}

// Under kAuto the interval is chosen after the first save.
Defaulted<Seconds> first_seconds(const Defaulted<SaveInterval>& secs) {
  if (secs.is_default()) return kUseDefault;
  if (secs.is_none()) return kNone;
  return is_auto(secs) ? kShortestAutoInterval : secs.value().seconds();
}

TimerInterval checkpoint_interval(const MonitoredTrainingSessionOptions& options) {
  return interval_of(first_seconds(options.save_checkpoint_secs), options.save_checkpoint_steps,
                     {.every_secs = Seconds{600}});
}

bool is_on(const TimerInterval& interval) {
  return interval.every_secs || interval.every_steps;
}

bool takes_checkpoints(const MonitoredTrainingSessionOptions& options) {
  return options.is_chief && !options.checkpoint_dir.empty() && is_on(checkpoint_interval(options));
}

// It is for a chief that has the directory locked.
bool keeps_journal(const MonitoredTrainingSessionOptions& options) {
  return takes_checkpoints(options) && options.chief.lock.lock && options.chief.keep_journal;
}

bool watches_for_hangs(const MonitoredTrainingSessionOptions& options) {
  return options.failures.hang.after > Seconds{0};
}

// Lists the hooks of the chief, in the order in which they are called.
class ChiefHooks {
 public:
  ChiefHooks(const MonitoredTrainingSessionOptions& options, std::shared_ptr<Scaffold> scaffold,
             std::shared_ptr<ChiefTenure> tenure)
      : options_(options),
        scaffold_(std::move(scaffold)),
        tenure_(std::move(tenure)),
        summary_dir_(absolute_directory(options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir)),
        summaries_(interval_of(options.save_summaries_secs, options.save_summaries_steps, {.every_steps = 100})),
        checkpoints_(checkpoint_interval(options)) {}

  SessionRunHooks list() const {
    SessionRunHooks hooks;
    if (options_.failures.loss.valid()) hooks.push_back(divergence_hook());
    hooks.insert(hooks.end(), options_.chief_only_hooks.begin(), options_.chief_only_hooks.end());
    if (!summary_dir_.empty() && options_.log_step_count_steps > 0) hooks.push_back(step_counter());
    if (!summary_dir_.empty() && is_on(summaries_)) hooks.push_back(summary_saver());
    if (takes_checkpoints(options_)) hooks.push_back(checkpoint_saver());
    if (keeps_journal(options_)) hooks.push_back(journal_hook());
    if (watches_for_hangs(options_)) hooks.push_back(hang_watch_hook());
    hooks.insert(hooks.end(), options_.hooks.begin(), options_.hooks.end());
    return hooks;
  }

 private:
  std::shared_ptr<SessionRunHook> divergence_hook() const {
    DivergenceOptions divergence = options_.failures.divergence;
    divergence.keep_in_checkpoints &= options_.master.empty();
    return std::make_shared<DivergenceHook>(
        options_.failures.loss,
        DivergenceHookOptions{
            .divergence = std::move(divergence),
            .tenure = tenure_,
            .scaffold = scaffold_,
            .search = {.files = options_.files,
                       .directory = absolute_directory(options_.checkpoint_dir),
                       .mirror = searched_mirror(options_.chief),
                       .recovery = options_.chief.recovery},
            .writer = hook_writer(nullptr, summary_dir_, options_.files, &options_.coordinator.clock())});
  }
  std::shared_ptr<SessionRunHook> step_counter() const {
    return std::make_shared<StepCounterHook>(StepCounterHookOptions{.every_n_steps = options_.log_step_count_steps,
                                                                    .output_dir = summary_dir_,
                                                                    .write_start = !is_on(summaries_),
                                                                    .files = options_.files,
                                                                    .clock = &options_.coordinator.clock()});
  }
  std::shared_ptr<SessionRunHook> summary_saver() const {
    return std::make_shared<SummarySaverHook>(SummarySaverHookOptions{.save_steps = summaries_.every_steps,
                                                                      .save_secs = summaries_.every_secs,
                                                                      .output_dir = summary_dir_,
                                                                      .scaffold = scaffold_,
                                                                      .files = options_.files,
                                                                      .clock = &options_.coordinator.clock()});
  }
  std::shared_ptr<SessionRunHook> checkpoint_saver() const {
    return std::make_shared<CheckpointSaverHook>(
        CheckpointSaverHookOptions{.checkpoint_dir = options_.checkpoint_dir,
                                   .save_secs = checkpoints_.every_secs,
                                   .save_steps = checkpoints_.every_steps,
                                   .scaffold = scaffold_,
                                   .saves = options_.failures.saves,
                                   .tenure = tenure_,
                                   .chooses_interval = is_auto(options_.save_checkpoint_secs),
                                   .preemption = options_.chief.preemption,
                                   .files = options_.files,
                                   .clock = &options_.coordinator.clock()});
  }

  std::shared_ptr<SessionRunHook> journal_hook() const {
    return std::make_shared<JournalHook>(JournalHookOptions{.tenure = tenure_,
                                                            .output_dir = is_on(summaries_) ? summary_dir_ : "",
                                                            .coordinator = options_.coordinator,
                                                            .files = options_.files});
  }

  std::shared_ptr<SessionRunHook> hang_watch_hook() const {
    return std::make_shared<HangWatchHook>(HangWatchHookOptions{.hang = options_.failures.hang,
                                                                .tenure = tenure_,
                                                                .output_dir = writes_events() ? summary_dir_ : "",
                                                                .files = options_.files,
                                                                .clock = &options_.coordinator.clock()});
  }
  bool writes_events() const { return is_on(summaries_) || options_.log_step_count_steps > 0; }

  const MonitoredTrainingSessionOptions& options_;
  const std::shared_ptr<Scaffold> scaffold_;
  const std::shared_ptr<ChiefTenure> tenure_;
  const std::string summary_dir_;
  const TimerInterval summaries_, checkpoints_;
};

std::shared_ptr<SessionCreator> make_creator(const MonitoredTrainingSessionOptions& options,
                                             const std::shared_ptr<Scaffold>& scaffold,
                                             const std::shared_ptr<ChiefTenure>& tenure) {
  if (!options.is_chief) {
    return std::make_shared<WorkerSessionCreator>(WorkerSessionCreatorOptions{.graph = options.graph,
                                                                              .scaffold = scaffold,
                                                                              .master = options.master,
                                                                              .config = options.config,
                                                                              .max_wait_secs = options.max_wait_secs,
                                                                              .coordinator = options.coordinator});
  }
  return std::make_shared<ChiefSessionCreator>(ChiefSessionCreatorOptions{.graph = options.graph,
                                                                          .scaffold = scaffold,
                                                                          .master = options.master,
                                                                          .config = options.config,
                                                                          .checkpoint_dir = options.checkpoint_dir,
                                                                          .mirror = searched_mirror(options.chief),
                                                                          .recovery = options.chief.recovery,
                                                                          .max_wait_secs = options.max_wait_secs,
                                                                          .tenure = tenure,
                                                                          .files = options.files,
                                                                          .coordinator = options.coordinator});
}

// Without a directory where no checkpoints are taken.
std::shared_ptr<ChiefTenure> make_tenure(const MonitoredTrainingSessionOptions& options) {
  return std::make_shared<ChiefTenure>(
      ChiefTenureOptions{.directory = takes_checkpoints(options) ? options.checkpoint_dir : "",
                         .directory_option = "checkpoint_dir",
                         .summary_directory = options.summary_dir,
                         .chief = options.chief,
                         .saves = options.failures.saves,
                         .files = options.files,
                         .clock = &options.coordinator.clock()});
}

std::vector<std::shared_ptr<StopAtStepHook>> those_that_end_it(const SessionRunHooks& hooks) {
  std::vector<std::shared_ptr<StopAtStepHook>> found;
  for (const auto& hook : hooks) {
    if (auto ends = std::dynamic_pointer_cast<StopAtStepHook>(hook)) found.push_back(std::move(ends));
  }
  return found;
}

void tell_progress_hooks(const SessionRunHooks& hooks, const MonitoredTrainingSessionOptions& options) {
  for (const auto& hook : hooks) {
    if (const auto progress = std::dynamic_pointer_cast<ProgressHook>(hook)) {
      progress->follow(those_that_end_it(hooks), takes_checkpoints(options) ? options.failures.saves : nullptr,
                       options.coordinator.clock());
    }
  }
}

// Called after all others, which see the run before it is told.
void add_status_hook(SessionRunHooks& hooks, const MonitoredTrainingSessionOptions& options,
                     const ChiefTenure& tenure) {
  if (!tenure.status()) return;
  StatusHookOptions made{
      .status = tenure.status(), .ends_by = those_that_end_it(hooks), .coordinator = options.coordinator};
  if (options.is_chief) {
    made.summary_dir = absolute_directory(options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir);
  }
  hooks.push_back(std::make_shared<StatusHook>(std::move(made)));
}

MonitoredSessionOptions session_options(const MonitoredTrainingSessionOptions& options) {
  const std::shared_ptr<ChiefTenure> tenure = make_tenure(options);
  const auto scaffold =
      options.scaffold
          ? options.scaffold
          : std::make_shared<Scaffold>(ScaffoldOptions{.files = options.files, .clock = &options.coordinator.clock()});
  MonitoredSessionOptions made{.session_creator = make_creator(options, scaffold, tenure),
                               .hooks = options.hooks,
                               .stop_grace_period_secs = options.stop_grace_period_secs,
                               .restart = options.failures.restart,
                               .coordinator = options.coordinator,
                               .preemption = options.chief.preemption,
                               .tenure = tenure};
  if (options.is_chief) {
    made.hooks = ChiefHooks(options, scaffold, tenure).list();
  } else if (watches_for_hangs(options)) {
    made.hooks.push_back(std::make_shared<HangWatchHook>(
        HangWatchHookOptions{.hang = options.failures.hang, .tenure = tenure, .clock = &options.coordinator.clock()}));
  }
  tell_progress_hooks(made.hooks, options);
  add_status_hook(made.hooks, options, *tenure);
  return made;
}

// The hook that would refuse both is not one that the program has made.
void check_one_of(const char* secs, const char* steps, const TimerInterval& interval) {
  if (!interval.every_secs || !interval.every_steps) return;
  throw InvalidArgumentError(fmt::format("exactly one of {} and {} must be given, but both are", secs, steps));
}

void check_watched_loss(const MonitoredTrainingSessionOptions& options) {
  if (!options.failures.loss.valid()) return;
  check_divergence(options.failures.divergence);
  if (!options.is_chief || keeps_journal(options)) return;
  throw InvalidArgumentError(
      "FailureOptions::loss is watched, but there is nothing to go back to: it needs checkpoints (checkpoint_dir), and "
      "the journal (ChiefOptions::keep_journal and ChiefOptions::lock.lock)");
}

void check_numbers(const MonitoredTrainingSessionOptions& options) {
  const auto check = [](const char* option, const auto& value) {
    if (!value.has_value()) return;
    if constexpr (requires { value.value().is_auto(); }) {
      if (!value.value().is_auto()) check_not_negative(option, value.value().seconds());
    } else if constexpr (requires { value.value().count(); }) {
      check_not_negative(option, value.value());
    } else {
      check_not_negative(option, static_cast<double>(value.value()));
    }
  };
  check("save_checkpoint_secs", options.save_checkpoint_secs);
  check("save_checkpoint_steps", options.save_checkpoint_steps);
  check("save_summaries_secs", options.save_summaries_secs);
  check("save_summaries_steps", options.save_summaries_steps);
  check_one_of("save_checkpoint_secs", "save_checkpoint_steps", checkpoint_interval(options));
  check_one_of("save_summaries_secs", "save_summaries_steps",
               interval_of(options.save_summaries_secs, options.save_summaries_steps, {}));
  check_not_negative("log_step_count_steps", static_cast<double>(options.log_step_count_steps));
  check_restart(options.failures.restart);
  check_hang(options.failures.hang, "failures.hang");
}

}  // namespace

MonitoredSessionOptions monitored_session_options(const MonitoredTrainingSessionOptions& options) {
  check_numbers(options);
  check_watched_loss(options);
  if (options.is_chief && options.checkpoint_dir.empty() && !options.chief.mirror.directory.empty()) {
    throw InvalidArgumentError("the mirror " + options.chief.mirror.directory +
                               " has nothing to mirror: set checkpoint_dir");
  }
  if (options.is_chief && options.checkpoint_dir.empty() && is_on(checkpoint_interval(options))) {
    log_warning(
        "MonitoredTrainingSessionOptions::checkpoint_dir is empty: no checkpoints are saved, and a restart starts from "
        "scratch. Pass .checkpoint_dir = \"runs/NAME\", or .save_checkpoint_secs = kNone if that is intended");
  }
  MonitoredTrainingSessionOptions used = options;
  if (!used.failures.saves) {
    used.failures.saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &options.coordinator.clock()});
  }
  return session_options(used);
}

void monitored_training_session(const MonitoredTrainingSessionOptions& options,
                                const std::function<void(MonitoredSession&)>& body) {
  MonitoredSession session(monitored_session_options(options));
  session.monitor([&] { body(session); });
}

}  // namespace longhaul
