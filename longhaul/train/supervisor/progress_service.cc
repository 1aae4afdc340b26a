#include "longhaul/train/supervisor/progress_service.h"

#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/session/step_watch.h"
#include "longhaul/train/checkpointing/shown_saves.h"

namespace longhaul {
namespace {

std::vector<Output> outputs_of(const ProgressOptions& options, const Graph& graph) {
  std::vector<Output> outputs;
  for (const LoggedTensor& value : options.values)
    outputs.push_back(output_of(graph, value.tensor, "ServiceOptions::progress"));
  return outputs;
}

StepFetching* step_fetching(Session& session, bool has_values) {
  if (!has_values) return nullptr;
  StepFetching* const fetching = session.capabilities().step_fetching;
  if (fetching == nullptr) {
    log_warning(
        "the line of progress has no values: this kind of session cannot compute them along with its steps (it has no "
        "StepFetching)");
  }
  return fetching;
}

}  // namespace

ProgressService::ProgressService(const ServiceContext& context, ProgressOptions options, int64_t last_step)
    // wait: polls: each step would have to notify
    : LooperThread(context.coord, progress_interval(options.out), {}, "lh-progress"),
      session_(context.session),
      global_step_(context.global_step),
      saves_(context.saves),
      options_(std::move(options)),
      last_step_(last_step),
      fetches_(outputs_of(options_, session_->graph())),
      along_(step_fetching(*session_, !fetches_.empty())) {}

void ProgressService::start_loop() {
  progress_.emplace(step_now().value_or(0), options_.out);
}

// A process that was stopped for a while is not to show all the lines that it has missed.
void ProgressService::run_loop() {
  const Seconds now = coord().clock().now();
  if (shown_step_ && now - last_line_ < progress_->interval() / 2) return;
  last_line_ = now;
  if (along_ != nullptr) {
    ask_for_values();
    // wait: for the values of the next step, and no longer than a line may wait
    coord().wait_for_stop_or([this] { return has_values(); }, progress_->interval() / 2);
  }
  const auto step = step_now();
  if (step && (step != shown_step_ || progress_->is_live())) show(*step);
  if (step && along_ != nullptr) give_up_on_values(steps_made(*step));
}

// The program may make steps until it joins the threads.
void ProgressService::stop_loop() {
  if (along_ != nullptr) along_->withdraw_step_fetch(this);
  forget_values();  // they are of an earlier step
  if (coord().reported_error() == nullptr) {
    // wait: the next line, if there are steps
    while (!coord().wait_for_join(progress_->interval())) show_if_new();
    show_if_new();
  }
  progress_.reset();
}

void ProgressService::forget_values() {
  MutexLock lock(values_->mutex);
  values_->newest.clear();
}

void ProgressService::show_if_new() {
  const auto step = step_now();
  if (step && step != shown_step_) show(*step);
}

int64_t ProgressService::steps_made(int64_t step) const {
  const StepWatching* const steps = session_->capabilities().step_watching;
  return steps != nullptr ? static_cast<int64_t>(steps->steps_ended()) : step;
}

// What no step computes would be looked for in each step.
void ProgressService::give_up_on_values(int64_t made) {
  constexpr int64_t kManySteps = 100;
  if (has_values()) return asked_at_.reset();
  if (!asked_at_) asked_at_ = made;
  if (made - *asked_at_ < kManySteps) return;
  along_->withdraw_step_fetch(this);
  along_ = nullptr;
  log_warning(
      "the line of progress is shown without its values (ServiceOptions::progress): none of {} steps could compute "
      "them, since it fed other placeholders than they need, or took other elements and random numbers",
      made - *asked_at_);
}

// The error of a step is the business of who made the step.
void ProgressService::ask_for_values() {
  {
    MutexLock lock(values_->mutex);
    if (std::exchange(values_->are_due, true)) return;
  }
  along_->request_step_fetch(
      {.fetches = fetches_,
       .done =
           [values = values_, coord = coord()](std::vector<Tensor> newest, const std::exception_ptr& error) {
             {
               MutexLock lock(values->mutex);
               if (!error) values->newest = std::move(newest);
               values->are_due = false;
             }
             coord.notify();
           },
       .requester = this});
}

bool ProgressService::has_values() const {
  MutexLock lock(values_->mutex);
  return !values_->are_due;
}

// A session that fails is the business of who makes steps.
std::optional<int64_t> ProgressService::step_now() const {
  try {
    return read_global_step(*session_, global_step_);
  } catch (const std::exception& error) {
    log_debug("the step is unknown to the line of progress: {}", error.what());
    return std::nullopt;
  }
}

void ProgressService::show(int64_t step) {
  std::vector<Tensor> values;
  {
    MutexLock lock(values_->mutex);
    values = values_->newest;
  }
  const ProgressLine line{.step = step, .last_step = last_step_, .values = progress_values(options_.values, values)};
  progress_->show(saves_ ? with_saves(line, saves_->status(), coord().clock().wall_time()) : line);
  shown_step_ = step;
}

}  // namespace longhaul
