#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "longhaul/train/checkpointing/save_attempts.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/hooks/stop_at_step_hook.h"
#include "longhaul/train/reporting/progress.h"

namespace longhaul {

// Shows the progress of a training (Progress): the step, the given values, the rate, the time that is left and the age
// of the last checkpoint. Other runs than those after which a line is due fetch the global step alone.
//
//   SessionRunHooks hooks{std::make_shared<StopAtStepHook>(StopAtStepHookOptions{.last_step = 8000}),
//                         std::make_shared<ProgressHook>(ProgressOptions{.values = {{"loss", loss}}})};
//
// A monitored_training_session() tells it the last step, if a StopAtStepHook has it, and how its saves go.
class ProgressHook : public SessionRunHook {
 public:
  // InvalidArgumentError: `out` is null.
  explicit ProgressHook(ProgressOptions options = {});

  // FailedPreconditionError: the graph has no global step. NotFoundError, InvalidArgumentError: no such tensor.
  void begin(Graph& graph) override;
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;  // shows the last step, which has no error

  // For who makes the session: hooks that may know the last step; the saves, and the clock that times them.
  void follow(std::vector<std::shared_ptr<StopAtStepHook>> ends_by, std::shared_ptr<const SaveAttempts> saves,
              const Clock& clock);

 private:
  void show(int64_t step, const std::vector<Tensor>& values);
  int64_t last_step() const;

  const ProgressOptions options_;
  std::vector<std::shared_ptr<StopAtStepHook>> ends_by_;
  std::shared_ptr<const SaveAttempts> saves_;  // null: not known
  const Clock* clock_ = &Clock::real();
  HookStep step_;
  SessionRunArgs with_values_;
  std::optional<Progress> progress_;  // of this session
  int64_t next_step_ = 0;             // that the next run will probably make
  int64_t shown_step_ = -1;
  bool due_ = false;
};

}  // namespace longhaul
