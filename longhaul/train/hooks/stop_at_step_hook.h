#pragma once

#include <cstdint>
#include <optional>

#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

struct StopAtStepHookOptions {
  std::optional<int64_t> num_steps{};  // exactly one of the two: steps to make after the first session's start
  std::optional<int64_t> last_step{};  // or the number of the last one
};

// Stops training once the global step reaches the last one: after the run that reaches it, or, if the session begins
// there, before its first run.
class StopAtStepHook : public SessionRunHook {
 public:
  explicit StopAtStepHook(StopAtStepHookOptions options);  // InvalidArgumentError: not exactly one of the two

  void begin(Graph& graph) override;  // FailedPreconditionError: the graph has no global step
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

  std::optional<int64_t> last_step() const { return last_step_; }  // nullopt: not known before the first session

 private:
  const StopAtStepHookOptions options_;
  std::optional<int64_t> last_step_;
  HookStep step_;
};

}  // namespace longhaul
