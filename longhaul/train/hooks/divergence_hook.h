#pragma once

#include <memory>
#include <string>

#include "longhaul/train/divergence/way_back.h"
#include "longhaul/train/hooks/hook_parts.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

class ChiefTenure;
class Scaffold;

struct DivergenceHookOptions {
  DivergenceOptions divergence{};
  std::shared_ptr<ChiefTenure> tenure{};       // whose journal has the rollbacks; that of the session
  std::shared_ptr<const Scaffold> scaffold{};  // whose saver takes the checkpoints
  // Where the session restores: the directory, its mirror, and which checkpoints in them count.
  FallBackOptions search{};
  std::shared_ptr<FileWriter> writer{};  // gets the number of rollbacks; nullptr: none
};

// Watches the loss of each run, a tensor with one element of any real dtype. If it goes bad, throws RollBackError, for
// which a MonitoredSession makes another session that restores the last good checkpoint; or DivergedError, which ends
// the training. A monitored_training_session() makes this hook from FailureOptions::divergence.
//
// Place it before the hook that saves: what a bad step leaves must not be saved. As a NanTensorHook, it looks at the
// loss of each run.
class DivergenceHook : public SessionRunHook {
 public:
  // InvalidArgumentError: no tenure, no scaffold, or what check_divergence() refuses.
  DivergenceHook(Fetch loss, DivergenceHookOptions options);

  // NotFoundError, InvalidArgumentError: the graph has no such tensor. FailedPreconditionError: no global step.
  // AlreadyExistsError: the graph has the values of another such hook.
  void begin(Graph& graph) override;
  // FailedPreconditionError: there is no journal, or no saver; or the model is on servers, but the hook keeps values in
  // checkpoints.
  void after_create_session(Session& session, const Coordinator& coord) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;

 private:
  const Fetch loss_;
  const DivergenceHookOptions options_;
  WayBack way_back_;
  HookStep step_;
  SessionRunArgs args_;             // the loss and the global step
  const Graph* kept_in_ = nullptr;  // WayBack::keep_in(); for comparison alone
};

}  // namespace longhaul
