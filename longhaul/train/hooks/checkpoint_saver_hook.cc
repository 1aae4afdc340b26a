#include "longhaul/train/hooks/checkpoint_saver_hook.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/base/no_steps_expected.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/io/files/canonical_directory.h"
#include "longhaul/train/checkpointing/final_checkpoint.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/recovery/recovered_list.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/sessions/graph_defaults.h"
#include "longhaul/train/sessions/scaffold.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/signals/stop_budget.h"
#include "longhaul/train/tenure/chief_tenure.h"
#include "longhaul/train/tenure/training_events.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestSave{3600};  // that is no hang

SaveOption save_option(const CheckpointSaverHookOptions& options) {
  if (options.chooses_interval) return {"save_checkpoint_secs is kAuto", std::nullopt};
  if (options.save_steps) return {fmt::format("save_checkpoint_steps is {}", *options.save_steps), std::nullopt};
  return {fmt::format("save_checkpoint_secs is {:g}", options.save_secs->count()), options.save_secs};
}

std::shared_ptr<RunJournal> journal_of(const CheckpointSaverHookOptions& options) {
  return options.tenure ? options.tenure->journal() : nullptr;
}

std::shared_ptr<Saver> find_saver_for(Graph& graph, const CheckpointSaverHookOptions& options) {
  if (options.saver != nullptr) return options.saver;
  if (options.scaffold != nullptr) return options.scaffold->saver();
  return find_saver(graph, Several::kRefuse, {.files = options.files, .clock = options.clock});
}

// The saver is new, made of the collection's definition. If the model was restored from a checkpoint of this directory,
// it manages those that are there.
void take_over_checkpoints(Saver& saver, const CheckpointSaverHookOptions& options, const std::string& directory,
                           int64_t step) {
  const auto candidates = checkpoint_candidates(*options.files, directory, options.checkpoint_basename);
  const auto is_of_step = [&](const std::string& prefix) { return split_step(prefix).step == step; };
  const auto restored = std::find_if(candidates.begin(), candidates.end(), is_of_step);
  if (restored == candidates.end()) return;
  recover_checkpoint_list(saver, *options.files, directory,
                          {.restored = *restored, .damaged = {candidates.begin(), restored}});
}

// A training that dies soon after a restart is to find the checkpoint again that it was restored from.
bool is_as_restored(const Saver& saver, const std::string& save_path, int64_t step) {
  const BaseAndStep last = split_step(saver.last_saved());
  return saver.is_as_restored() && last.step == step && canonical_prefix(last.base) == canonical_prefix(save_path);
}

// A save here holds up the training for all the time that it takes.
SaveCosts measure(const SaveReport& report, SaveCostMeter& meter, Seconds now) {
  meter.begins(now, std::nullopt);
  meter.ends(now, std::nullopt, report.total);
  return {report.total, report.total, report.total};
}

void tell_failed(const std::vector<std::shared_ptr<CheckpointSaverListener>>& listeners, Session& session,
                 int64_t step) {
  for (const auto& listener : listeners) listener->save_failed(session, step);
}

void write_graph_everywhere(const Graph& graph, const std::string& directory, FileSystem& files,
                            const std::shared_ptr<FileWriter>& writer, const Saver& saver) {
  write_graph_text(graph, directory, files);
  TrainingEvents(writer, graph, &saver).write_graph();
}

bool is_retry_or_early_due(const CheckpointCadence& cadence, const SaveAttempts& saves, Seconds now) {
  return cadence.is_retry_due(saves) || (cadence.early_interval() && cadence.is_early_due(now));
}

}  // namespace

CheckpointSaverHook::CheckpointSaverHook(CheckpointSaverHookOptions options)
    : options_(std::move(options)),
      directory_(absolute_directory(options_.checkpoint_dir)),
      save_path_(join_path(directory_, options_.checkpoint_basename)),
      saves_(options_.saves ? options_.saves
                            : std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = options_.clock})),
      preemption_(options_.preemption),
      timer_({options_.save_secs, options_.save_steps}, options_.clock, "CheckpointSaverHook") {
  if (directory_.empty()) throw InvalidArgumentError("CheckpointSaverHook needs a checkpoint_dir");
  if (options_.saver != nullptr && options_.scaffold != nullptr) {
    throw InvalidArgumentError("CheckpointSaverHook: pass a saver or a scaffold, not both");
  }
}

void CheckpointSaverHook::preempted_by(Preemption* preemption) {
  if (options_.preemption == nullptr) preemption_ = preemption;
}

void CheckpointSaverHook::begin(Graph& graph) {
  step_.find(graph, "CheckpointSaverHook");
  writer_ = hook_writer(options_.summary_writer, directory_, options_.files, options_.clock);
  saver_.reset();
  timer_.reset();
  graph_is_written_ = stop_wanted_ = false;
  start_step_.reset();
  cadence_ = std::make_unique<CheckpointCadence>(
      CadenceOptions{save_option(options_), options_.save_secs, options_.chooses_interval, journal_of(options_)});
  runs_at_step_ = 0;
  for (const auto& listener : options_.listeners) listener->begin();
}

void CheckpointSaverHook::after_create_session(Session& session, const Coordinator& coord) {
  stops_ = coord;
  const int64_t step = step_.now(session);
  notices_.begin(session, options_.tenure ? options_.tenure->status() : nullptr, *stops_);
  if (!start_step_) start_step_ = step;
  Saver& saver = this->saver(session.graph());
  if (!graph_is_written_) write_graph_everywhere(session.graph(), directory_, *options_.files, writer_, saver);
  graph_is_written_ = true;
  if (options_.saver == nullptr && options_.scaffold == nullptr) {
    take_over_checkpoints(saver, options_, directory_, step);
  }
  if (options_.tenure) options_.tenure->mirror_saves_of(saver);
  const bool is_there = is_as_restored(saver, save_path_, step);
  cadence_->session_begins(options_.clock->now());
  save(session, step, [&] { return is_there || save_once(target(session.graph()), session).has_value(); });
}

Saver& CheckpointSaverHook::saver(Graph& graph) {
  if (saver_ != nullptr) return *saver_;
  saver_ = find_saver_for(graph, options_);
  if (saver_ == nullptr) {
    throw FailedPreconditionError(options_.scaffold != nullptr
                                      ? "CheckpointSaverHook: the scaffold has no saver"
                                      : "CheckpointSaverHook: the graph's collection savers is empty; pass a saver");
  }
  return *saver_;
}

const SessionRunArgs* CheckpointSaverHook::before_run(SessionRunContext&) {
  return options_.save_steps ? &step_.args() : nullptr;
}

void CheckpointSaverHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const bool is_wanted = preemption_ != nullptr && preemption_->take_save_request();
  const bool is_asked_for =
      is_retry_or_early_due(*cadence_, *saves_, options_.clock->now()) || notices_.take() || is_wanted;
  ++runs_at_step_;
  if (is_asked_for || may_be_due(values)) {
    const int64_t step = step_.now(context.session());
    const bool has_moved = step != timer_.last_triggered_step();
    if (is_asked_for || is_due(step)) save(context.session(), step);
    if (has_moved || has_waited_for_steps()) runs_at_step_ = 0;
  }
  if (stop_wanted_) context.request_stop();
}

// Judges by the step that the run began with. Where only the time counts, runs are spared the reading of it.
bool CheckpointSaverHook::may_be_due(const SessionRunValues& values) const {
  if (has_waited_for_steps()) return true;
  const int64_t before =
      options_.save_steps ? HookStep::before_the_run(values) : timer_.last_triggered_step().value_or(0);
  return timer_.should_trigger_for_step(before + options_.steps_per_run);
}

// A program that forgets to count its steps is not to lose all for it: where the step stands still, what has changed is
// saved as time passes, or after so many runs as would have been steps.
bool CheckpointSaverHook::is_due(int64_t step) const {
  const bool stands_still = step == timer_.last_triggered_step();
  return timer_.should_trigger_for_step(step) || (stands_still && (options_.save_secs || has_waited_for_steps()));
}

bool CheckpointSaverHook::has_waited_for_steps() const {
  constexpr int64_t kFewestRuns = 1000;  // others than steps, a validation's above all, are not to be looked at each
  return options_.save_steps && runs_at_step_ >= std::max(*options_.save_steps, kFewestRuns);
}

SaveTarget CheckpointSaverHook::target(Graph& graph) {
  return {
      .saver = saver(graph),
      .attempts = *saves_,
      .save_path = save_path_,
      .global_step = step_.tensor(),
      .writer = writer_.get(),
      .journal = journal_of(options_).get(),
      .costs = [this](const SaveReport& report) { return measure(report, cadence_->meter(), options_.clock->now()); },
      .before_write =
          [this](std::optional<int64_t> step) {
            log_debug("Saving checkpoints for {} into {}.", step.value_or(0), save_path_);
          },
      .relative_paths = !strip_file_scheme(options_.checkpoint_dir).starts_with('/'),
      .deadline = StopBudget(preemption_).deadline(),
      .pause = stops_ ? pause_until_stop(*stops_) : Pause()};
}

void CheckpointSaverHook::save(Session& session, int64_t step) {
  save(session, step, [&] { return save_once(target(session.graph()), session).has_value(); });
}

// What a listener throws, too, is an attempt that the cadence has to know of.
void CheckpointSaverHook::save(Session& session, int64_t step, const std::function<bool()>& attempt) {
  const NoStepsExpected saving(kLongestSave);
  timer_.update_last_triggered_step(step);
  bool worked = false;
  std::exception_ptr error;
  try {
    worked = try_to_save(session, step, attempt);
    worked ? tell_after(session, step) : tell_failed(options_.listeners, session, step);
  } catch (...) {
    error = std::current_exception();
  }
  cadence_->attempted(options_.clock->now(), worked);
  if (options_.chooses_interval) timer_.set_every_secs(cadence_->interval().value());
  if (error) std::rethrow_exception(error);
}

// The listeners are told of each attempt, also where the step is saved already: what one of them swaps in is in the
// checkpoint, so only with it can be seen whether anything has changed.
bool CheckpointSaverHook::try_to_save(Session& session, int64_t step, const std::function<bool()>& attempt) {
  for (const auto& listener : options_.listeners) listener->before_save(session, step);
  try {
    return attempt();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    try {
      tell_failed(options_.listeners, session, step);
    } catch (const std::exception& another) {
      log_error("a save failed, and then a CheckpointSaverListener failed too: {}", another.what());
    }
    std::rethrow_exception(error);
  }
}

void CheckpointSaverHook::tell_after(Session& session, int64_t step) {
  for (const auto& listener : options_.listeners) {
    if (!listener->after_save(session, step)) continue;
    log_info("A CheckpointSaverListener requested that training be stopped.");
    stop_wanted_ = true;
  }
}

void CheckpointSaverHook::end(Session& session) {
  const int64_t step = step_.now(session);
  save(session, step, [&] { return save_final_checkpoint(target(session.graph()), session, preemption_); });
  for (const auto& listener : options_.listeners) listener->end(session, step);
  flush_or_log(*writer_, StopBudget(preemption_).deadline());
}

std::optional<UnsavedSteps> CheckpointSaverHook::count_unsaved_steps(Session& session, bool after_error) const {
  if (saver_ == nullptr) return std::nullopt;
  try {
    const auto unsaved = unsaved_steps(*saver_, save_path_, start_step_, step_.now(session));
    if (unsaved && after_error) log_warning("{}", describe_lost(*unsaved, *saver_));
    return unsaved;
  } catch (const std::exception& error) {
    log_debug("the steps since the last checkpoint are unknown: {}", error.what());
    return std::nullopt;
  }
}

}  // namespace longhaul
