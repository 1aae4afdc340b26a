#include "longhaul/train/hooks/stop_at_step_hook.h"

#include <limits>

#include "longhaul/base/log.h"

namespace longhaul {

StopAtStepHook::StopAtStepHook(StopAtStepHookOptions options) : options_(options) {
  if (options_.num_steps.has_value() == options_.last_step.has_value()) {
    throw InvalidArgumentError("StopAtStepHook: exactly one of num_steps and last_step must be given");
  }
}

namespace {

constexpr int64_t kLastOfAll = std::numeric_limits<int64_t>::max();

}  // namespace

void StopAtStepHook::begin(Graph& graph) {
  step_.find(graph, "StopAtStepHook");
  last_step_ = options_.last_step;
}

void StopAtStepHook::after_create_session(Session& session, const Coordinator& coord) {
  const int64_t now = step_.now(session);
  if (!last_step_) last_step_ = *options_.num_steps > kLastOfAll - now ? kLastOfAll : now + *options_.num_steps;
  if (now < *last_step_) return;
  log_info("training stops before its first step: it is at step {}, and StopAtStepHook's last step is {}", now,
           *last_step_);
  coord.request_stop();
}

const SessionRunArgs* StopAtStepHook::before_run(SessionRunContext&) {
  return &step_.args();
}

void StopAtStepHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const bool may_be_last = HookStep::before_the_run(values) + 1 >= last_step_;
  if (may_be_last && step_.now(context.session()) >= last_step_) context.request_stop();
}

}  // namespace longhaul
