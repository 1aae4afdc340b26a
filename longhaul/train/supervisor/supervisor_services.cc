#include "longhaul/train/supervisor/supervisor_services.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/session/step_fetch.h"
#include "longhaul/train/reporting/step_rate.h"

namespace longhaul {
namespace {

std::vector<Output> summary_fetches(const ServiceContext& context) {
  std::vector<Output> fetches{context.summary_op};
  if (context.global_step.valid()) fetches.push_back(context.global_step);
  return fetches;
}

// False for a checkpoint of the mirror, from which the model may have been restored: the directory of the training
// lacks it.
bool is_in_same_directory(const std::string& prefix, const std::string& save_path) {
  return !prefix.empty() && directory_name(canonical_prefix(prefix)) == directory_name(canonical_prefix(save_path));
}

std::shared_ptr<const ServiceContext> complete(std::shared_ptr<const ServiceContext> context, const char* service,
                                               bool is_complete, const char* what) {
  if (context->session == nullptr || !is_complete) {
    throw InvalidArgumentError(fmt::format("{}: its ServiceContext needs {}", service, what));
  }
  return context;
}

CadenceOptions cadence_options(const ServiceContext& context) {
  const Seconds seconds = context.save_model_secs;
  const SaveOption option = context.chooses_interval
                                ? SaveOption{"save_model_secs is kAuto", std::nullopt}
                                : SaveOption{fmt::format("save_model_secs is {:g}", seconds.count()), seconds};
  return {option, seconds, context.chooses_interval, context.journal};
}

void write_summary(FileWriter& writer, const std::vector<Tensor>& values) {
  const int64_t step = values.size() > 1 ? values[1].item<int64_t>() : 0;
  log_debug("Recording summary at step {}.", values.size() > 1 ? std::to_string(step) : "None");
  writer.add_summary(values[0].item<std::string>(), step);
}

StepFetching& step_fetching(Session& session) {
  return required_capability(session.capabilities().step_fetching,
                             "summary_op: these summaries need a feed, a queue or random numbers, but this kind of "
                             "session cannot compute them with its steps (it has no StepFetching): set "
                             "summary_op = kNone, fetch the summaries with a step, and call summary_computed()");
}

constexpr Seconds kLookAfterStop{5};

// The rest of a grace period; nullopt: no preemption limits the time.
std::optional<Seconds> time_left(const ServiceContext& context) {
  return context.deadline != nullptr ? context.deadline->left() : std::nullopt;
}

// Within a grace period at each third of what is left of it: what is made late should be saved before the kill.
Seconds look_after_stop(const ServiceContext& context) {
  constexpr Seconds kShortest{0.25};
  const std::optional<Seconds> left = time_left(context);
  return left ? std::clamp(*left / 3, kShortest, kLookAfterStop) : kLookAfterStop;
}

// Whether steps are made after a stop, judged by the step at each look.
class LateSteps {
 public:
  // True once: when a step began after the first look. The one under way then may be the last.
  bool begin_to_show(std::optional<int64_t> step) {
    if (!first_) first_ = step;
    return step && *step > *first_ + 1 && !std::exchange(is_known_, true);
  }

 private:
  std::optional<int64_t> first_;
  bool is_known_ = false;
};

void warn_of_late_steps(Seconds since_stop, int64_t step) {
  log_warning(
      "a stop was requested {:.0f} s ago, but the program still makes steps (now step {}): end its loop when "
      "should_stop() is true. Until it ends, checkpoints are saved",
      since_stop.count(), step);
}

// nullopt: there is none, or it cannot be read, of which who makes steps will be told.
std::optional<int64_t> step_after_stop(const ServiceContext& context) {
  if (!context.global_step.valid()) return std::nullopt;
  try {
    return read_global_step(*context.session, context.global_step);
  } catch (const std::exception& error) {
    log_debug("the step after the stop is unknown: {}", error.what());
    return std::nullopt;
  }
}

// After a success nobody waits any more for the time of a retry.
bool save_and_notify(const ServiceContext& context, const SaveTarget& target) {
  const bool worked = save_once(target, *context.session).has_value();
  if (worked) context.coord.notify();
  return worked;
}

// False: the training stops. The time that is left is looked at again and again: it may pass before the wait begins.
bool wait_for_retry(const Coordinator& coord, const SaveAttempts& saves) {
  const auto is_due = [&] { return saves.time_to_retry() <= Seconds{0}; };
  return !coord.wait_for_stop_or(is_due, saves.time_to_retry());  // wait: the pause after a failed save
}

}  // namespace

int64_t read_global_step(Session& session, const Output& global_step) {
  return session.run(global_step).item<int64_t>();
}

SaveTarget save_target(const ServiceContext& context) {
  return {.saver = *context.saver,
          .attempts = *context.saves,
          .save_path = context.save_path,
          .global_step = context.global_step,
          .writer = context.writer.get(),
          .journal = context.journal.get(),
          .before_write = [path = context.save_path](auto) { log_debug("Saving checkpoint to path {}", path); },
          .relative_paths = context.relative_paths,
          .deadline = context.deadline,
          .pause = pause_until_stop(context.coord)};
}

bool save_checkpoint(const ServiceContext& context) {
  return save_and_notify(context, save_target(context));
}

bool save_and_measure(const ServiceContext& context, SaveCostMeter& meter) {
  const auto step = [&]() -> std::optional<int64_t> {
    if (!context.global_step.valid()) return std::nullopt;
    return read_global_step(*context.session, context.global_step);
  };
  const Clock& clock = context.coord.clock();
  SaveTarget target = save_target(context);
  target.costs = [&](const SaveReport& report) {
    meter.ends(clock.now(), step(), report.snapshot);
    return SaveCosts{report.snapshot, report.total, meter.last()};
  };
  meter.begins(clock.now(), step());
  return save_and_notify(context, target);
}

SummaryService::SummaryService(std::shared_ptr<const ServiceContext> context)
    // wait: a summary after each interval
    : LooperThread(context->coord, context->save_summaries_secs, {}, "lh-summaries"),
      context_(complete(context, "SummaryService", context->writer != nullptr && context->summary_op.valid(),
                        "a session, a writer and a summary_op")),
      fetches_(summary_fetches(*context_)),
      along_(is_side_effect_free(fetches_) ? nullptr : &step_fetching(*context_->session)) {}

void SummaryService::run_loop() {
  if (along_ == nullptr) {
    const std::vector<Fetch> fetches(fetches_.begin(), fetches_.end());
    write_summary(*context_->writer, context_->session->run(fetches, {}, {.snapshot = true}));
    return;
  }
  // The error of a step is the business of who made the step.
  along_->request_step_fetch({fetches_,
                              [writer = context_->writer](const std::vector<Tensor>& values, std::exception_ptr error) {
                                if (!error) write_summary(*writer, values);
                              },
                              this});
}

void SummaryService::stop_loop() {
  if (along_ != nullptr) along_->withdraw_step_fetch(this);
}

StepCounterService::StepCounterService(std::shared_ptr<const ServiceContext> context)
    : LooperThread(context->coord, context->save_summaries_secs, {}, "lh-steps"),  // wait: a rate after each interval
      context_(complete(context, "StepCounterService", context->writer != nullptr && context->global_step.valid(),
                        "a session, a writer and a global_step")),
      tag_(rate_tag(context_->global_step)) {}

void StepCounterService::start_loop() {
  last_time_ = coord().clock().now();
  last_step_ = read_global_step(*context_->session, context_->global_step);
}

void StepCounterService::run_loop() {
  constexpr int kMostLogged = 10;
  const int64_t step = read_global_step(*context_->session, context_->global_step);
  const Seconds now = coord().clock().now();
  const double per_second = steps_per_second(step - last_step_, now - last_time_);
  last_step_ = step;
  last_time_ = now;
  context_->writer->add_scalar(tag_, static_cast<float>(per_second), step);
  if (logged_++ < kMostLogged) log_debug("{}: {:g}", tag_, per_second);
}

TimerCheckpointService::TimerCheckpointService(std::shared_ptr<const ServiceContext> context)
    // wait: a checkpoint after each interval
    : LooperThread(context->coord, context->save_model_secs, {}, "lh-checkpoints"),
      context_(complete(context, "TimerCheckpointService", context->saver != nullptr, "a session and a saver")),
      snapshots_(snapshots_of(*context_->session)),
      cadence_(cadence_options(*context_)),
      is_saved_(context_->saver->is_as_restored() &&
                is_in_same_directory(context_->saver->last_saved(), context_->save_path)) {}

void TimerCheckpointService::start_loop() {
  snapshots_->prepare([this] { return coord().should_stop(); });
  cadence_.session_begins(coord().clock().now());
}

void TimerCheckpointService::run_loop() {
  const Clock& clock = coord().clock();
  if (std::exchange(is_saved_, false)) return cadence_.attempted(clock.now(), /*worked=*/true);
  const Seconds next = clock.now() + cadence_.interval().value();
  while (!save()) {
    if (clock.now() + context_->saves->time_to_retry() >= next || !wait_for_retry(coord(), *context_->saves)) return;
  }
}

void TimerCheckpointService::stop_loop() {
  const Clock& clock = coord().clock();
  const Seconds stop = clock.now();
  Seconds due = stop + cadence_.interval().value();
  LateSteps late;
  // wait: polls: the steps of a program that ignores the stop
  while (!coord().wait_for_join(look_after_stop(*context_))) {
    const std::optional<int64_t> step = step_after_stop(*context_);
    if (late.begin_to_show(step)) {
      warn_of_late_steps(clock.now() - stop, *step);
      due = clock.now();
    }
    if (clock.now() < due) continue;
    if (!save()) {
      due = clock.now() + context_->saves->time_to_retry();
    } else {
      due = clock.now() + (time_left(*context_) ? Seconds{0} : cadence_.interval().value());
    }
  }
}

bool TimerCheckpointService::save() {
  const bool worked =
      context_->chooses_interval ? save_and_measure(*context_, cadence_.meter()) : save_checkpoint(*context_);
  cadence_.attempted(coord().clock().now(), worked);
  return worked;
}

// A request and a save of another service notify; the time of a retry comes by itself.
void RequestedSaveService::run_loop() {
  const SaveAttempts& saves = *context_->saves;
  is_wanted_ |= take_request();
  if (!is_wanted_) {
    // wait: a request and a stop end it
    coord().wait_for_stop_or([this] { return has_request(); });
  } else if (saves.time_to_retry() > Seconds{0}) {
    wait_for_retry(coord(), saves);
  } else {
    is_wanted_ = !save_checkpoint(*context_);
  }
}

StopNoticeService::StopNoticeService(std::shared_ptr<const ServiceContext> context, StopNoticing& noticing)
    : RequestedSaveService(std::move(context), "lh-notices"),
      notices_(noticing.notice_stops([is_noticed = is_noticed_, coord = coord()](const StopNotice&) {
        *is_noticed = true;
        coord.notify();
      })) {}

}  // namespace longhaul
