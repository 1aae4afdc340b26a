#pragma once

#include "longhaul/ops/training/sync_replicas_optimizer.h"
#include "longhaul/train/hooks/session_run_hook.h"

namespace longhaul {

// Prepares each session of a replica for a SyncReplicasOptimizer: TensorFlow's make_session_run_hook(). The chief's
// hook sets the accumulators to the global step, hands out the first tokens, and starts the thread that makes the
// steps. The hook of any other replica waits until a chief has done that (after a restart of the task that has the
// tokens, until it has done it again), and then sets the local step. The session must be held by a shared_ptr, as a
// MonitoredSession's is.
class SyncReplicasHook : public SessionRunHook {
 public:
  // The optimizer must live until begin() has been called. `num_tokens`: see SyncReplicasOptimizer::get_init_tokens_op.
  SyncReplicasHook(const SyncReplicasOptimizer& optimizer, bool is_chief, int num_tokens = -1);

  // FailedPreconditionError "SyncReplicasOptimizer.apply_gradient should be called before using the hook".
  // InvalidArgumentError: too few tokens.
  void begin(Graph& graph) override;
  // FailedPreconditionError: the global variables have no values yet.
  void after_create_session(Session& session, const Coordinator& coord) override;

 private:
  void check_model(Session& session) const;

  const SyncReplicasOptimizer& optimizer_;
  const bool is_chief_;
  const int num_tokens_;
  Output ready_op_;
  Operation init_op_, init_tokens_op_;
  proto::QueueRunnerDef runner_;
};

}  // namespace longhaul
