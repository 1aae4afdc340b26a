#include "longhaul/train/hooks/sync_replicas_hook.h"

#include <fmt/format.h>

#include "longhaul/train/input/queue_runner.h"
#include "longhaul/train/sessions/readiness.h"

namespace longhaul {

SyncReplicasHook::SyncReplicasHook(const SyncReplicasOptimizer& optimizer, bool is_chief, int num_tokens)
    : optimizer_(optimizer), is_chief_(is_chief), num_tokens_(num_tokens) {}

void SyncReplicasHook::begin(Graph&) {
  if (!optimizer_.gradients_applied()) {
    throw FailedPreconditionError(
        "SyncReplicasOptimizer.apply_gradient should be called before using the hook: a SyncReplicasHook was begun "
        "before apply_gradients() or minimize()");
  }
  ready_op_ = optimizer_.ready_for_local_init_op();
  init_op_ = is_chief_ ? optimizer_.chief_init_op() : optimizer_.local_step_init_op();
  if (!is_chief_) return;
  init_tokens_op_ = optimizer_.get_init_tokens_op(num_tokens_);
  runner_ = optimizer_.get_chief_queue_runner();
}

void SyncReplicasHook::after_create_session(Session& session, const Coordinator& coord) {
  check_model(session);
  session.run(init_op_);
  if (!is_chief_) return;
  session.run(init_tokens_op_);
  QueueRunner(runner_).create_threads(session.weak_from_this().lock(), coord, /*start=*/true);
}

void SyncReplicasHook::check_model(Session& session) const {
  const Readiness found = check_ready(session, ready_op_);
  if (found.ready) return;
  throw FailedPreconditionError(fmt::format(
      "Init operations did not make model ready for SyncReplicasOptimizer local_init. Init op: {}, error: {}",
      init_op_.name(), found.why));
}

}  // namespace longhaul
