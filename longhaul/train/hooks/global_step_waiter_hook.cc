#include "longhaul/train/hooks/global_step_waiter_hook.h"

#include "longhaul/base/log.h"
#include "longhaul/session/step_watch.h"

namespace longhaul {

void GlobalStepWaiterHook::begin(Graph& graph) {
  step_.find(graph, "GlobalStepWaiterHook");
  done_ = wait_until_step_ <= 0;
}

void GlobalStepWaiterHook::after_create_session(Session&, const Coordinator& coord) {
  coord_ = coord;
}

const SessionRunArgs* GlobalStepWaiterHook::before_run(SessionRunContext& context) {
  if (!done_) wait(context.session());
  done_ = true;
  return nullptr;
}

void GlobalStepWaiterHook::wait(Session& session) const {
  constexpr Seconds kBetweenLooks{0.5};
  constexpr int64_t kStepsBetweenLines = 1000;
  log_info("Waiting for global step {} before starting training.", wait_until_step_);
  auto is_reached = [&, last_logged = int64_t{0}]() mutable {
    const int64_t step = step_.now(session);
    if (step >= wait_until_step_ || step - last_logged <= kStepsBetweenLines) return step >= wait_until_step_;
    log_info("Waiting for global step {} before starting training. It is {} now.", wait_until_step_, step);
    last_logged = step;
    return false;
  };
  if (StepWatching* steps = watching(session)) {
    const auto watch = steps->watch_steps({.step = step_.tensor(), .passed = [coord = coord_] { coord.notify(); }});
    coord_.wait_for_stop_or(is_reached);  // wait: each step notifies
    return;
  }
  while (!is_reached()) {
    if (coord_.wait_for_stop(kBetweenLooks)) return;  // wait: polls: others make the steps
  }
}

StepWatching* GlobalStepWaiterHook::watching(Session& session) const {
  StepWatching* steps = session.capabilities().step_watching;
  const bool is_notified = steps != nullptr && steps->sees_all_steps() && step_.tensor().dtype() == kInt64;
  return is_notified ? steps : nullptr;
}

}  // namespace longhaul
