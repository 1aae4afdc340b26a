#include "longhaul/train/hooks/progress_hook.h"

#include <utility>

#include "longhaul/train/checkpointing/shown_saves.h"

namespace longhaul {

ProgressHook::ProgressHook(ProgressOptions options) : options_(std::move(options)) {
  check_progress(options_, "ProgressHook");
}

void ProgressHook::begin(Graph& graph) {
  step_.find(graph, "ProgressHook");
  with_values_ = step_.args();
  for (const LoggedTensor& value : options_.values)
    with_values_.fetches.push_back(output_of(graph, value.tensor, "ProgressHook"));
}

void ProgressHook::after_create_session(Session& session, const Coordinator&) {
  const int64_t step = step_.now(session);
  next_step_ = step + 1;
  shown_step_ = -1;
  progress_.reset();  // ends its line before the next one begins
  progress_.emplace(step, options_.out);
}

const SessionRunArgs* ProgressHook::before_run(SessionRunContext&) {
  due_ = progress_->due(next_step_);
  return due_ ? &with_values_ : &step_.args();
}

void ProgressHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  int64_t step = HookStep::before_the_run(values) + 1;
  if (due_) {
    step = step_.now(context.session());
    const auto shown = values.results.subspan(1);
    show(step, {shown.begin(), shown.end()});
  }
  next_step_ = step + 1;
}

void ProgressHook::end(Session& session) {
  if (const int64_t step = step_.now(session); step != shown_step_) show(step, {});
  progress_.reset();
}

void ProgressHook::show(int64_t step, const std::vector<Tensor>& values) {
  const ProgressLine line{.step = step, .last_step = last_step(), .values = progress_values(options_.values, values)};
  shown_step_ = step;
  progress_->show(saves_ ? with_saves(line, saves_->status(), clock_->wall_time()) : line);
}

int64_t ProgressHook::last_step() const {
  for (const auto& hook : ends_by_) {
    if (const auto last = hook->last_step()) return *last;
  }
  return 0;
}

void ProgressHook::follow(std::vector<std::shared_ptr<StopAtStepHook>> ends_by,
                          std::shared_ptr<const SaveAttempts> saves, const Clock& clock) {
  ends_by_ = std::move(ends_by);
  saves_ = std::move(saves);
  clock_ = &clock;
}

}  // namespace longhaul
