#pragma once

#include <optional>
#include <string>
#include <vector>

#include "longhaul/ops/input/queue_ops.h"
#include "longhaul/ops/training/accumulators.h"
#include "longhaul/ops/training/moving_averages.h"
#include "longhaul/ops/training/optimizer.h"
#include "longhaul/proto/queue_runner.pb.h"

namespace longhaul {

struct SyncReplicasOptions {
  int total_num_replicas = 0;  // 0: as many as are aggregated; more: the slowest of each step are spare
  ExponentialMovingAverage* variable_averages = nullptr;  // moved in each step; used by apply_gradients() only
  std::vector<Variable> variables_to_average{};           // empty: the trainable ones
  bool use_locking = false;  // for TensorFlow's programs: updates exclude each other here in any case
  std::string name = "sync_replicas";

  // Longhaul's own. Once `min_replicas` gradients have waited for that long for the others of their step, the chief
  // makes the step without these, and a warning says how many there were. The chief's options count. 0 (both): it waits
  // until all that are aggregated have come, and warns after a minute, and then again and again.
  Seconds wait_secs{0};
  int min_replicas = 0;
  // This replica in the log; empty: the device of its local step. It becomes a part of the local step's
  // name, so replicas that share one server, as several sessions in a process can, need different ones.
  std::string worker{};
};

// Wraps an optimizer so that several replicas of a model make each step together: TensorFlow's SyncReplicasOptimizer.
// The update is made once for each step, by the chief, with the mean of `replicas_to_aggregate` gradients.
//
//   GradientDescentOptimizer descent(0.1);
//   SyncReplicasOptimizer optimizer(descent, /*replicas_to_aggregate=*/2);
//   const Operation train = optimizer.minimize(loss, ops::global_step(root));
//   const auto hook = std::make_shared<SyncReplicasHook>(optimizer, is_chief);
//   monitored_training_session({.graph = &graph, .is_chief = is_chief, .hooks = {hook}}, [&](auto& session) {
//     while (!session.should_stop()) session.run(train);
//   });
//
// A run of the train operation pushes each gradient into its variable's accumulator, together with the replica's local
// step, and then waits for a token. The token is the global step, and becomes the local step. The chief's queue runner
// waits until each accumulator has enough gradients, makes the step, and puts a token for each replica. A gradient
// whose local step is over is dropped, and its run succeeds. This happens once after each start: the replicas' second
// runs begin with the first tokens, whose step is over by then.
//
// Each replica builds the same graph ("between-graph replication"): accumulators and tokens have the same shared names.
// Or one graph has all replicas: call apply_gradients() of one object once for each, with the same variables, and run
// each train operation on its own thread.
//
// A replica that waits for a token without end is named in the log of the task with the global step, a step that lacks
// gradients in those of the tasks with the variables. A replica whose session ends or is lost gives its token back, so
// the others go on if they are enough (or push in its place). A chief that begins again makes the tokens of the one
// before void, and replicas that live longer than it go on from its step. A task that is restarted has no tokens: the
// chief puts them when its next session begins, and the replicas' next sessions wait for that.
//
// A replica's train operation is run by one thread at a time. Two runs at once would share one local step and one
// token: a warning says so.
//
// With more replicas than are aggregated the slowest of each step count for nothing in it; with fewer, some replicas
// compute several gradients for a step, and need tokens for them: get_init_tokens_op().
class SyncReplicasOptimizer : public Optimizer {
 public:
  // The optimizer and the averages must live until the last apply_gradients(). InvalidArgumentError: a number of
  // replicas is not positive; wait_secs is negative; min_replicas is not between 1 and the number that is aggregated,
  // or one of the two is set without the other.
  SyncReplicasOptimizer(Optimizer& optimizer, int replicas_to_aggregate, SyncReplicasOptions options = {});

  // Returns the operation that a replica runs. InvalidArgumentError: no gradients ("Must supply at least one
  // variable"); no global step ("Global step is required to check staleness"); in a second call, the variables that
  // have a gradient are not those of the first; the gradients depend on a change of a variable, as with batch_norm() in
  // training mode.
  Operation apply_gradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                            const std::optional<Variable>& global_step = {}) override;

  // Those of the wrapped optimizer.
  std::optional<Variable> get_slot(const Variable& variable, const std::string& slot) const override;
  const std::vector<Variable>& variables() const override { return optimizer_.variables(); }

  // All of the following throw FailedPreconditionError before apply_gradients().

  // The description of the chief's thread: QueueRunner(optimizer.get_chief_queue_runner()). SyncReplicasHook starts it;
  // with a Supervisor, pass it to Supervisor::start_queue_runners(). A stop ends its wait for gradients.
  proto::QueueRunnerDef get_chief_queue_runner() const;
  // Adds the operation by which the chief puts the first tokens, in place of all that there are: run it once in each of
  // the chief's sessions. -1: as many as gradients are aggregated; replicas then
  // need not wait for each other before the second step. 0: they do. InvalidArgumentError "Too few tokens to finish the
  // first step": fewer than are aggregated beyond the number of replicas.
  Operation get_init_tokens_op(int num_tokens = -1) const;

  // Run one of them in each session before training, once ready_for_local_init_op is empty: the first in the chief's,
  // the second in all others. Both set the local step; the chief's also sets the accumulators to the global step. The
  // others' waits until a chief has run get_init_tokens_op() since the task with the tokens was started.
  Operation chief_init_op() const;
  Operation local_step_init_op() const;  // of the last apply_gradients()
  Output ready_for_local_init_op() const;

  bool gradients_applied() const { return shared_.has_value(); }
  // The local step of the last apply_gradients(), and the tokens, for programs that look at them.
  const Variable& local_step() const;
  const FIFOQueue& sync_token_queue() const;

 private:
  // The gradients of one variable.
  struct Collected {
    Variable variable;
    std::optional<ConditionalAccumulator> dense;
    std::optional<SparseConditionalAccumulator> rows;
    const AccumulatorBase& accumulator() const;
  };
  // What the replicas have in common.
  struct Shared {
    Scope scope;  // that of the global step
    Variable global_step;
    FIFOQueue tokens, dummy;
    std::vector<Collected> collected;
    Operation update;
  };
  // What one replica has.
  struct Replica {
    Variable local_step;
    Operation chief_init, init;  // in the chief's session, and in others
  };

  Operation apply(const Scope& scope, const Output& gradient, const Variable& variable) override;
  const Shared& made(const char* what) const;
  Collected collect(const Scope& scope, const GradientAndVariable& pair) const;
  GradientAndVariable take(const Scope& scope, const Collected& collected) const;
  Operation push(const Scope& scope, const Collected& collected, const Output& gradient, const Output& local_step,
                 const std::string& worker) const;
  void add_shared(const Scope& scope, const std::vector<GradientAndVariable>& gradients, const Variable& global_step);
  Operation add_update(const Scope& scope);
  std::vector<Output> collected_of(const std::vector<GradientAndVariable>& gradients) const;
  Operation add_replica(const Scope& scope, const std::vector<GradientAndVariable>& gradients);
  Operation add_local_init(const Scope& scope, const Variable& local_step, Attrs holder, bool awaits_chief) const;
  void add_init_ops(const Scope& scope);
  Operation cancel_waits(const Scope& scope) const;

  Optimizer& optimizer_;
  const int replicas_to_aggregate_, total_num_replicas_;
  const SyncReplicasOptions options_;
  std::optional<Shared> shared_;
  std::vector<Replica> replicas_;
  Operation chief_init_op_;
  Output ready_op_;
  proto::QueueRunnerDef runner_;
};

}  // namespace longhaul
