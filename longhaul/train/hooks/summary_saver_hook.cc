#include "longhaul/train/hooks/summary_saver_hook.h"

#include <utility>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/reporting/run_events.h"
#include "longhaul/train/sessions/scaffold.h"

namespace longhaul {

SummarySaverHook::SummarySaverHook(SummarySaverHookOptions options)
    : options_(std::move(options)),
      timer_({options_.save_secs, options_.save_steps}, options_.clock, "SummarySaverHook") {
  if (options_.summary_op.empty() == (options_.scaffold == nullptr)) {
    throw InvalidArgumentError("SummarySaverHook: exactly one of scaffold and summary_op must be given");
  }
  if (options_.summary_writer == nullptr && options_.output_dir.empty()) {
    throw InvalidArgumentError("SummarySaverHook has nowhere to write: pass an output_dir or a summary_writer");
  }
}

void SummarySaverHook::begin(Graph& graph) {
  step_.find(graph, "SummarySaverHook");
  step_and_summaries_ = {};
  writer_ = hook_writer(options_.summary_writer, options_.output_dir, options_.files, options_.clock);
}

void SummarySaverHook::after_create_session(Session&, const Coordinator&) {
  next_step_.reset();
}

const SessionRunArgs* SummarySaverHook::before_run(SessionRunContext&) {
  due_ = !next_step_ || timer_.should_trigger_for_step(*next_step_);
  return due_ ? &with_summaries() : &step_.args();
}

const SessionRunArgs& SummarySaverHook::with_summaries() {
  if (!step_and_summaries_.fetches.empty()) return step_and_summaries_;
  step_and_summaries_ = step_.args();
  std::vector<Fetch>& fetches = step_and_summaries_.fetches;
  fetches.insert(fetches.end(), options_.summary_op.begin(), options_.summary_op.end());
  if (options_.scaffold != nullptr && options_.scaffold->summary_op().valid()) {
    fetches.push_back(options_.scaffold->summary_op());
  }
  return step_and_summaries_;
}

void SummarySaverHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  int64_t step = HookStep::before_the_run(values) + 1;
  if (due_) {
    step = step_.now(context.session());
    write(values.results.subspan(1), step);
  }
  next_step_ = step + 1;
}

void SummarySaverHook::write(std::span<const Tensor> summaries, int64_t step) {
  if (!next_step_ && options_.write_start) write_start(*writer_, step);
  timer_.update_last_triggered_step(step);
  for (const Tensor& summary : summaries) writer_->add_summary(summary.item<std::string>(), step);
}

void SummarySaverHook::end(Session&) {
  flush_or_log(*writer_, std::exchange(deadline_, nullptr));
}

void SummarySaverHook::end_before(Session& session, const Deadline* deadline) {
  deadline_ = deadline;
  end(session);
}

}  // namespace longhaul
