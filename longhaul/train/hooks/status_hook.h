#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/events/scalar_watch.h"
#include "longhaul/ops/state_ops.h"
#include "longhaul/train/hooks/session_run_hook.h"
#include "longhaul/train/hooks/stop_at_step_hook.h"
#include "longhaul/train/status/run_status.h"

namespace longhaul {

struct StatusHookOptions {
  std::shared_ptr<RunStatus> status{};                     // what is told
  std::string summary_dir{};                               // whose scalars are shown as curves; empty: none
  std::vector<std::shared_ptr<StopAtStepHook>> ends_by{};  // which know the last step
  Coordinator coordinator{};                               // what POST /stop stops; its clock measures all times
};

// Tells the status page of a monitored session how training goes, on the thread that runs the session: the step after a
// run once a second, which costs the other runs a look at the clock. Place it last.
class StatusHook : public SessionRunHook {
 public:
  explicit StatusHook(StatusHookOptions options) : options_(std::move(options)) {}

  void begin(Graph& graph) override;  // a graph without a global step has no progress
  void after_create_session(Session& session, const Coordinator& coord) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void interrupted();  // this session is lost

 private:
  void look(Session& session);

  const StatusHookOptions options_;
  std::optional<Variable> step_;
  Seconds next_look_{0};
};

}  // namespace longhaul
