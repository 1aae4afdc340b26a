#pragma once

#include <cstdint>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Delays the first run until other workers have brought the global step to the given one, or a stop is requested. A
// session through which all steps are made notifies it of each (session/step_watch.h); in any other it reads the step
// every half second. With it, the workers of a cluster can start one after the other.
class GlobalStepWaiterHook : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step) : wait_until_step_(wait_until_step) {}

  void begin(Graph& graph) override;  // FailedPreconditionError: the graph has no global step
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;

 private:
  void wait(Session& session) const;
  StepWatching* watching(Session& session) const;  // nullptr: the session cannot notify of all steps

  const int64_t wait_until_step_;
  HookStep step_;
  Coordinator coord_;
  bool done_ = false;
};

}  // namespace longhaul
