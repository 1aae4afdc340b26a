#include "longhaul/train/hooks/step_counter_hook.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/reporting/step_rate.h"
#include "longhaul/train/saving/step_advice.h"

namespace longhaul {

StepCounterHook::StepCounterHook(StepCounterHookOptions options)
    : options_(std::move(options)),
      timer_({options_.every_n_secs, options_.every_n_steps}, options_.clock, "StepCounterHook") {}

void StepCounterHook::begin(Graph& graph) {
  step_.find(graph, "StepCounterHook");
  tag_ = rate_tag(step_.tensor());
  writer_ = hook_writer(options_.summary_writer, options_.output_dir, options_.files, options_.clock);
}

void StepCounterHook::after_create_session(Session&, const Coordinator&) {
  timer_.reset();
  first_step_.reset();
  has_moved_ = false;
  runs_ = 0;
}

const SessionRunArgs* StepCounterHook::before_run(SessionRunContext&) {
  return &step_.args();
}

void StepCounterHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const int64_t before = HookStep::before_the_run(values);
  if (timer_.should_trigger_for_step(before + options_.steps_per_run)) count(step_.now(context.session()));
  check_progress(context.session().graph(), before);
}

void StepCounterHook::count(int64_t step) {
  if (!timer_.should_trigger_for_step(step)) return;
  const auto made = timer_.update_last_triggered_step(step);
  if (!made) {
    if (options_.write_start && writer_ != nullptr) write_start(*writer_, step);
    return;
  }
  const double per_second = steps_per_second(made->steps, made->time);
  if (writer_ != nullptr) writer_->add_scalar(tag_, static_cast<float>(per_second), step);
  log_debug("{}: {:g}", tag_, per_second);
}

void StepCounterHook::check_progress(const Graph& graph, int64_t before) {
  constexpr int kMostWarnings = 5;
  if (!first_step_) first_step_ = before;
  has_moved_ |= before != *first_step_;
  if (has_moved_ || ++runs_ < runs_to_warn_ || warnings_ == kMostWarnings) return;
  ++warnings_;
  runs_to_warn_ *= 10;
  log_warning(
      "It seems that the global step ({}) has not been increased: it was {} at the beginning of each of {} runs. To "
      "count steps, {}.",
      step_.tensor().name(), before, runs_,
      step_advice(graph, "pass ops::global_step() to the optimizer's minimize() or apply_gradients()"));
}

void StepCounterHook::end(Session&) {
  if (writer_ != nullptr) flush_or_log(*writer_, std::exchange(deadline_, nullptr));
}

void StepCounterHook::end_before(Session& session, const Deadline* deadline) {
  deadline_ = deadline;
  end(session);
}

}  // namespace longhaul
