#include "longhaul/train/monitored_training_session.h"

#include "longhaul/train/checkpoint_saver_hook.h"
#include "longhaul/train/step_counter_hook.h"
#include "longhaul/train/summary_saver_hook.h"

namespace longhaul {
namespace {

TimerInterval interval_of(const Setting<Seconds>& secs, const Setting<int64_t>& steps,
                          const TimerInterval& by_default) {
  if (secs.is_default() && steps.is_default()) return by_default;
  TimerInterval interval;
  if (secs.has_value() && secs.value() > Seconds{0}) interval.every_secs = secs.value();
  if (steps.has_value() && steps.value() > 0) interval.every_steps = steps.value();
  return interval;
}

bool is_on(const TimerInterval& interval) {
  return interval.every_secs || interval.every_steps;
}

// Lists the hooks of the chief, in the order in which they are called.
class ChiefHooks {
 public:
  ChiefHooks(const MonitoredTrainingSessionOptions& options, std::shared_ptr<Scaffold> scaffold)
      : options_(options),
        scaffold_(std::move(scaffold)),
        summary_dir_(options.summary_dir.empty() ? options.checkpoint_dir : options.summary_dir),
        summaries_(interval_of(options.save_summaries_secs, options.save_summaries_steps, {.every_steps = 100})),
        checkpoints_(
            interval_of(options.save_checkpoint_secs, options.save_checkpoint_steps, {.every_secs = Seconds{600}})) {}

  SessionRunHooks list() const {
    SessionRunHooks hooks = options_.chief_only_hooks;
    if (!summary_dir_.empty() && options_.log_step_count_steps > 0) hooks.push_back(step_counter());
    if (!summary_dir_.empty() && is_on(summaries_)) hooks.push_back(summary_saver());
    if (!options_.checkpoint_dir.empty() && is_on(checkpoints_)) hooks.push_back(checkpoint_saver());
    hooks.insert(hooks.end(), options_.hooks.begin(), options_.hooks.end());
    return hooks;
  }

 private:
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
                                   .lock_checkpoint_dir = options_.lock_checkpoint_dir,
                                   .saves = options_.saves,
                                   .files = options_.files,
                                   .clock = &options_.coordinator.clock()});
  }

  const MonitoredTrainingSessionOptions& options_;
  const std::shared_ptr<Scaffold> scaffold_;
  const std::string summary_dir_;
  const TimerInterval summaries_, checkpoints_;
};

std::shared_ptr<SessionCreator> make_creator(const MonitoredTrainingSessionOptions& options,
                                             const std::shared_ptr<Scaffold>& scaffold) {
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
                                                                          .files = options.files,
                                                                          .coordinator = options.coordinator});
}

}  // namespace

MonitoredSessionOptions monitored_session_options(const MonitoredTrainingSessionOptions& options) {
  const auto scaffold =
      options.scaffold
          ? options.scaffold
          : std::make_shared<Scaffold>(ScaffoldOptions{.files = options.files, .clock = &options.coordinator.clock()});
  return {.session_creator = make_creator(options, scaffold),
          .hooks = options.is_chief ? ChiefHooks(options, scaffold).list() : options.hooks,
          .stop_grace_period_secs = options.stop_grace_period_secs,
          .restart = options.restart,
          .coordinator = options.coordinator};
}

void monitored_training_session(const MonitoredTrainingSessionOptions& options,
                                const std::function<void(MonitoredSession&)>& body) {
  MonitoredSession session(monitored_session_options(options));
  session.monitor([&] { body(session); });
}

}  // namespace longhaul
