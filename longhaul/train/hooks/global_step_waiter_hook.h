#pragma once

#include <cstdint>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Delays the first run until other workers have brought the global step to the given one, at which it looks every half
// second, or a stop is requested. This lets the workers of a cluster start one after the other.
class GlobalStepWaiterHook : public SessionRunHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step) : wait_until_step_(wait_until_step) {}

  void begin(Graph& graph) override;  // FailedPreconditionError: the graph has no global step
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;

 private:
  void wait(Session& session) const;

  const int64_t wait_until_step_;
  HookStep step_;
  Coordinator coord_;
  bool done_ = false;
};

}  // namespace longhaul
