#include "longhaul/train/hooks/status_hook.h"

namespace longhaul {

void StatusHook::begin(Graph& graph) {
  step_ = ops::get_global_step(graph);
  options_.status->stopped_by(options_.coordinator);
  if (!options_.summary_dir.empty()) options_.status->follow_scalars(options_.summary_dir);
}

void StatusHook::after_create_session(Session& session, const Coordinator&) {
  for (const auto& hook : options_.ends_by) {
    if (const auto last = hook->last_step()) options_.status->ends_at(*last);
  }
  options_.status->trains();
  look(session);
}

void StatusHook::after_run(SessionRunContext& context, const SessionRunValues&) {
  if (options_.coordinator.clock().now() >= next_look_) look(context.session());
}

void StatusHook::look(Session& session) {
  next_look_ = options_.coordinator.clock().now() + kStepLookSecs;
  if (step_) options_.status->look(session.run(*step_).item<int64_t>());
}

void StatusHook::interrupted() {
  options_.status->prepares("the session was lost, and another one is made");
}

}  // namespace longhaul
