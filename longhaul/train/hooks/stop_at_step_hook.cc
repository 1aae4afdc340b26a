#include "longhaul/train/hooks/stop_at_step_hook.h"

#include <limits>

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

void StopAtStepHook::after_create_session(Session& session, const Coordinator&) {
  if (last_step_) return;
  const int64_t now = step_.now(session), more = *options_.num_steps;
  last_step_ = more > kLastOfAll - now ? kLastOfAll : now + more;
}

const SessionRunArgs* StopAtStepHook::before_run(SessionRunContext&) {
  return &step_.args();
}

void StopAtStepHook::after_run(SessionRunContext& context, const SessionRunValues& values) {
  const bool may_be_last = HookStep::before_the_run(values) + 1 >= last_step_;
  if (may_be_last && step_.now(context.session()) >= last_step_) context.request_stop();
}

}  // namespace longhaul
