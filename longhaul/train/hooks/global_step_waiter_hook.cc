#include "longhaul/train/hooks/global_step_waiter_hook.h"

#include "longhaul/base/log.h"

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
  int64_t last_logged = 0;
  do {
    const int64_t step = step_.now(session);
    if (step >= wait_until_step_) return;
    if (step - last_logged <= kStepsBetweenLines) continue;
    log_info("Waiting for global step {} before starting training. It is {} now.", wait_until_step_, step);
    last_logged = step;
  } while (!coord_.wait_for_stop(kBetweenLooks));  // wait: other workers make the steps, and notify nobody
}

}  // namespace longhaul
