#include "longhaul/train/supervisor/progress_service.h"

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/train/checkpointing/shown_saves.h"

namespace longhaul {
namespace {

constexpr const char* kOption = "ServiceOptions::progress";

ProgressOptions checked(ProgressOptions options, const ServiceContext& context) {
  check_progress(options, kOption);
  if (!context.session || !context.global_step.valid()) {
    throw InvalidArgumentError(
        "ServiceOptions::progress needs a global step: call ops::create_global_step(), or set "
        "SupervisorOptions::global_step");
  }
  return options;
}

std::vector<Output> outputs_of(const ProgressOptions& options, const Graph& graph) {
  std::vector<Output> outputs;
  for (const LoggedTensor& value : options.values) outputs.push_back(output_of(graph, value.tensor, kOption));
  return outputs;
}

StepFetching* step_fetching(Session& session, const std::vector<Output>& fetches) {
  if (fetches.empty()) return nullptr;
  return &required_capability(session.capabilities().step_fetching,
                              "ServiceOptions::progress: this kind of session cannot compute values along with its "
                              "steps (it has no StepFetching): leave ProgressOptions::values empty");
}

}  // namespace

ProgressService::ProgressService(const ServiceContext& context, ProgressOptions options, int64_t last_step)
    // wait: polls: each step would have to notify
    : LooperThread(context.coord, Progress(0, options.out).interval(), {}, "lh-progress"),
      session_(context.session),
      global_step_(context.global_step),
      saves_(context.saves),
      options_(checked(std::move(options), context)),
      last_step_(last_step),
      fetches_(outputs_of(options_, session_->graph())),
      along_(step_fetching(*session_, fetches_)) {}

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
  if (const auto step = step_now(); step && (step != shown_step_ || progress_->is_live())) show(*step);
}

void ProgressService::stop_loop() {
  if (along_ != nullptr) along_->withdraw_step_fetch(this);
  const auto step = coord().reported_error() == nullptr ? step_now() : std::nullopt;
  if (step && step != shown_step_) show(*step);
  progress_.reset();
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
