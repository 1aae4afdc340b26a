#include "longhaul/ops/training/sync_replicas_optimizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "longhaul/base/log.h"
#include "longhaul/ops/array_ops.h"
#include "longhaul/ops/training/slot_variable.h"

namespace longhaul {
namespace {

constexpr const char* kLocalStep = "sync_rep_local_step";
constexpr Seconds kWarnSecs{60};  // for gradients that do not come

Scope at_variable(const Scope& scope, const Variable& variable) {
  return scope.with_device(variable.ref().op().device());
}

// An operation on the queue of tokens (host/accumulators/sync_tokens.h).
Operation add_token_op(const Scope& scope, const std::string& type, std::string_view name, const FIFOQueue& tokens,
                       const Output& step, Attrs attrs) {
  return scope.add(type, name, {tokens.handle(), step}, std::move(attrs));
}

void check_waiting(const SyncReplicasOptions& options, int replicas_to_aggregate) {
  const bool is_off = options.wait_secs.count() == 0 && options.min_replicas == 0;
  const bool is_right = options.wait_secs.count() > 0 && options.min_replicas > 0;
  if (is_off || (is_right && options.min_replicas <= replicas_to_aggregate)) return;
  throw InvalidArgumentError(fmt::format(
      "{}: wait_secs is {} and min_replicas {}: to make steps without late replicas, set both, and min_replicas to {} "
      "(replicas_to_aggregate) at most; to wait for all, neither",
      options.name, options.wait_secs.count(), options.min_replicas, replicas_to_aggregate));
}

FIFOQueue shared_queue(const Scope& scope, int32_t capacity, DType dtype, const std::string& name) {
  return {scope, capacity, {dtype}, {.shapes = {Shape{}}, .shared_name = name, .name = name}};
}

Variable add_local_step(const Scope& scope, DType dtype, const std::string& worker) {
  const std::string name = worker.empty() ? kLocalStep : fmt::format("{}_{}", kLocalStep, worker);
  const std::string full_name = ops::free_name(scope.graph(), scope.prefix() + name);
  const Tensor zero = dtype == kInt32 ? Tensor::scalar<int32_t>(0) : Tensor::scalar<int64_t>(0);
  return ops::variable(scope.outermost(), full_name, zero,
                       {.trainable = false, .collection = collections::kLocalVariables});
}

// Who a replica is in the log.
std::string name_in_log(const std::string& worker, const Variable& local_step) {
  if (!worker.empty()) return worker;
  const std::string& device = local_step.ref().op().device();
  return device.empty() ? "the replica of " + local_step.name() : device;
}

// An operation that changes a variable and on which one of the tensors depends; invalid: there is none.
Operation change_before(const std::vector<Output>& tensors) {
  std::vector<Operation> pending;
  for (const Output& tensor : tensors) pending.push_back(tensor.op());
  std::unordered_set<Operation, OperationHash> seen(pending.begin(), pending.end());
  while (!pending.empty()) {
    const Operation op = pending.back();
    pending.pop_back();
    if ((op.traits() & kWritesVariable) != 0) return op;
    for (const Output& input : op.inputs()) {
      if (seen.insert(input.op()).second) pending.push_back(input.op());
    }
    for (const Operation& control : op.control_inputs()) {
      if (seen.insert(control).second) pending.push_back(control);
    }
  }
  return {};
}

// A run must not wait between two changes, because a snapshot would wait with it; the other one is the local step's.
void check_pushes(const std::string& optimizer, const std::vector<Output>& gradients) {
  const Operation change = change_before(gradients);
  if (!change) return;
  throw InvalidArgumentError(fmt::format(
      "{}: {} ({}) changes {} before the gradients are pushed, and a run must not change variables before it waits for "
      "a token. Change it in a run of its own, without training: batch_norm() in training mode, for example, cannot be "
      "used here",
      optimizer, change.name(), change.type(), change.inputs()[0].op().name()));
}

}  // namespace

SyncReplicasOptimizer::SyncReplicasOptimizer(Optimizer& optimizer, int replicas_to_aggregate,
                                             SyncReplicasOptions options)
    : Optimizer(options.name),
      optimizer_(optimizer),
      replicas_to_aggregate_(replicas_to_aggregate),
      total_num_replicas_(options.total_num_replicas == 0 ? replicas_to_aggregate : options.total_num_replicas),
      options_(std::move(options)) {
  if (replicas_to_aggregate_ <= 0 || total_num_replicas_ <= 0) {
    throw InvalidArgumentError(
        fmt::format("{}: the numbers of replicas must be positive: replicas_to_aggregate is {}, total_num_replicas {}",
                    options_.name, replicas_to_aggregate_, total_num_replicas_));
  }
  check_waiting(options_, replicas_to_aggregate_);
  log_info("SyncReplicasV2: replicas_to_aggregate={}; total_num_replicas={}", replicas_to_aggregate_,
           total_num_replicas_);
}

const AccumulatorBase& SyncReplicasOptimizer::Collected::accumulator() const {
  if (rows) return *rows;
  return *dense;
}

const SyncReplicasOptimizer::Shared& SyncReplicasOptimizer::made(const char* what) const {
  if (!shared_)
    throw FailedPreconditionError(fmt::format("{}: {} should be called after apply_gradients().", options_.name, what));
  return *shared_;
}

std::optional<Variable> SyncReplicasOptimizer::get_slot(const Variable& variable, const std::string& slot) const {
  return optimizer_.get_slot(variable, slot);
}

// apply_gradients() never comes to it.
Operation SyncReplicasOptimizer::apply(const Scope&, const Output&, const Variable& variable) {
  throw InternalError(fmt::format("{}: {} is updated by the wrapped optimizer", options_.name, variable.name()));
}

Operation SyncReplicasOptimizer::apply_gradients(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                                                 const std::optional<Variable>& global_step) {
  if (gradients.empty()) throw InvalidArgumentError(options_.name + ": Must supply at least one variable");
  if (!global_step) throw InvalidArgumentError(options_.name + ": Global step is required to check staleness");
  if (!shared_) add_shared(scope, gradients, *global_step);
  const Operation train = add_replica(scope, gradients);
  add_init_ops(scope);
  scope.graph().add_to_collection(collections::kTrainOp, train);
  return train;
}

SyncReplicasOptimizer::Collected SyncReplicasOptimizer::collect(const Scope& scope,
                                                                const GradientAndVariable& pair) const {
  const Scope at = at_variable(scope, pair.variable);
  const AccumulatorOptions options{.shape = pair.variable.shape(),
                                   .shared_name = pair.variable.ref().name() + "/grad_accum"};
  Collected collected{.variable = pair.variable, .dense = {}, .rows = {}};
  if (ops::indexed_slices_of(pair.gradient)) {
    collected.rows.emplace(at, pair.gradient.dtype(), options);
  } else {
    collected.dense.emplace(at, pair.gradient.dtype(), options);
  }
  return collected;
}

GradientAndVariable SyncReplicasOptimizer::take(const Scope& scope, const Collected& collected) const {
  const Scope at = at_variable(scope, collected.variable);
  const TakeOptions options{
      .min_required = options_.min_replicas, .wait_secs = options_.wait_secs, .warn_secs = kWarnSecs};
  if (collected.dense) return {collected.dense->take_grad(at, replicas_to_aggregate_, "", options), collected.variable};
  const IndexedSlices rows = collected.rows->take_indexed_slices_grad(at, replicas_to_aggregate_, "", options);
  return {ops::with_values(at, rows, rows.values), collected.variable};
}

Operation SyncReplicasOptimizer::push(const Scope& scope, const Collected& collected, const Output& gradient,
                                      const Output& local_step, const std::string& worker) const {
  const Scope at = at_variable(scope, collected.variable);
  if (collected.dense) return collected.dense->apply_grad(at, gradient, local_step, worker);
  const std::optional<IndexedSlices> rows = ops::indexed_slices_of(gradient);
  if (rows) return collected.rows->apply_indexed_slices_grad(at, *rows, local_step, worker);
  throw InvalidArgumentError(
      fmt::format("{}: the first replica's gradient of {} is one of some rows, but {} is a whole tensor", options_.name,
                  collected.variable.name(), gradient.name()));
}

// Accumulators, tokens, and the update that the chief makes.
void SyncReplicasOptimizer::add_shared(const Scope& scope, const std::vector<GradientAndVariable>& gradients,
                                       const Variable& global_step) {
  const Scope plain = scope.without_control_dependencies(), at_step = at_variable(plain, global_step);
  const Scope named = plain.sub(options_.name);
  std::vector<Collected> collected;
  std::vector<GradientAndVariable> taken;
  for (const GradientAndVariable& pair : gradients) {
    if (pair.gradient.valid()) collected.push_back(collect(named, pair));
    taken.push_back(pair.gradient.valid() ? take(named, collected.back()) : pair);
  }
  const Operation update = optimizer_.apply_gradients(at_step, taken, global_step);
  shared_.emplace(Shared{.scope = at_step,
                         .global_step = global_step,
                         .tokens = shared_queue(at_step, -1, global_step.dtype(), "sync_token_q"),
                         .dummy = shared_queue(at_step, 1, kInt32, "dummy_queue"),
                         .collected = std::move(collected),
                         .update = update});
  const Operation step = add_update(named);
  runner_.set_queue_name(shared_->dummy.name());
  runner_.add_enqueue_op_name(step.name());
  runner_.set_close_op_name(shared_->dummy.close(named).name());
  runner_.set_cancel_op_name(cancel_waits(named).name());
  runner_.add_queue_closed_exception_types(proto::error::Code(Code::kOutOfRange));
}

// The averages move before the tokens are put: they belong to the step, and no replica is ahead of them.
Operation SyncReplicasOptimizer::add_update(const Scope& scope) {
  const Scope at_step = at_variable(scope, shared_->global_step);
  Operation done = shared_->update;
  if (options_.variable_averages != nullptr) {
    done = options_.variable_averages->apply(shared_->scope.with_control_dependencies({done}),
                                             options_.variables_to_average);
  }
  const Output step = ops::read_value(at_step.with_control_dependencies({done}), shared_->global_step, "step");
  const int tokens_per_step = std::max(total_num_replicas_, replicas_to_aggregate_);
  return add_token_op(at_step, "SyncTokenPut", "put_tokens", shared_->tokens, step,
                      {{"count", int64_t{tokens_per_step}}});
}

Operation SyncReplicasOptimizer::cancel_waits(const Scope& scope) const {
  std::vector<Operation> ends{shared_->dummy.close(scope, /*cancel_pending_enqueues=*/true)};
  for (const Collected& collected : shared_->collected) {
    ends.push_back(collected.accumulator().cancel_takes(at_variable(scope, collected.variable)));
  }
  return ops::group(scope, ends, "cancel_waits");
}

// In the order of the accumulators.
std::vector<Output> SyncReplicasOptimizer::collected_of(const std::vector<GradientAndVariable>& gradients) const {
  std::vector<Output> found;
  for (const Collected& collected : shared_->collected) {
    const auto pair = std::find_if(gradients.begin(), gradients.end(), [&](const GradientAndVariable& candidate) {
      return candidate.gradient.valid() && candidate.variable.ref() == collected.variable.ref();
    });
    if (pair != gradients.end()) found.push_back(pair->gradient);
  }
  const auto given = std::count_if(gradients.begin(), gradients.end(),
                                   [](const GradientAndVariable& pair) { return pair.gradient.valid(); });
  if (found.size() == shared_->collected.size() && given == static_cast<std::ptrdiff_t>(found.size())) return found;
  throw InvalidArgumentError(fmt::format(
      "{}: each replica needs a gradient of the same variables. The first one has {} of them; this one has {}, and {} "
      "of these are the same",
      options_.name, shared_->collected.size(), given, found.size()));
}

// Pushes, then a token, which becomes the local step. The worker is counted with its first push alone: once in a run.
Operation SyncReplicasOptimizer::add_replica(const Scope& scope, const std::vector<GradientAndVariable>& gradients) {
  const std::vector<Output> own = collected_of(gradients);
  check_pushes(options_.name, own);
  const Scope named = scope.sub(options_.name), plain = named.without_control_dependencies();
  const Variable local_step =
      add_local_step(scope.without_control_dependencies(), shared_->global_step.dtype(), options_.worker);
  const std::string own_name = name_in_log(options_.worker, local_step);
  std::string worker = own_name;
  std::vector<Operation> pushes;
  for (size_t i = 0; i < own.size(); ++i) {
    pushes.push_back(push(named, shared_->collected[i], own[i], local_step, std::exchange(worker, "")));
  }
  const Scope pushed = at_variable(plain, shared_->global_step).with_control_dependencies(pushes);
  const Attrs holder{{"holder", local_step.name()}, {"worker", own_name}};
  const Output token =
      add_token_op(pushed, "SyncTokenTake", "take_token", shared_->tokens, local_step, holder).output();
  replicas_.push_back({.local_step = local_step,
                       .chief_init = add_local_init(plain, local_step, holder, /*awaits_chief=*/false),
                       .init = add_local_init(plain, local_step, holder, /*awaits_chief=*/true)});
  return ops::assign(plain, local_step, token, "set_local_step").op();
}

// The step is read after the waits, in which a chief may restore another one.
Operation SyncReplicasOptimizer::add_local_init(const Scope& scope, const Variable& local_step, Attrs holder,
                                                bool awaits_chief) const {
  const Scope at_step = at_variable(scope, shared_->global_step);
  Attrs joins = holder;
  joins["await_chief"] = awaits_chief;
  Operation begun = at_step.add("SyncTokenJoin", "join", {shared_->tokens.handle()}, std::move(joins));
  if (awaits_chief) {
    const Output seen = ops::read_value(at_step.with_control_dependencies({begun}), shared_->global_step, "seen_step");
    begun = add_token_op(at_step, "SyncTokenFollow", "follow", shared_->tokens, seen, std::move(holder));
  }
  const Output step = ops::read_value(at_step.with_control_dependencies({begun}), shared_->global_step, "step");
  return ops::assign(scope, local_step, step, "local_step_init").op();
}

void SyncReplicasOptimizer::add_init_ops(const Scope& scope) {
  const Scope named = scope.without_control_dependencies().sub(options_.name);
  std::vector<Operation> inits;
  for (const Replica& replica : replicas_) inits.push_back(replica.chief_init);
  for (const Collected& collected : shared_->collected) {
    inits.push_back(
        collected.accumulator().set_global_step(at_variable(named, collected.variable), shared_->global_step));
  }
  chief_init_op_ = ops::group(named, inits, "chief_init");
  ready_op_ = ops::report_uninitialized_variables(named, ops::global_variables(scope.graph()));
}

proto::QueueRunnerDef SyncReplicasOptimizer::get_chief_queue_runner() const {
  made("get_chief_queue_runner()");
  return runner_;
}

Operation SyncReplicasOptimizer::get_init_tokens_op(int num_tokens) const {
  const Shared& shared = made("get_init_tokens_op()");
  const int needed = std::max(replicas_to_aggregate_ - total_num_replicas_, 0);
  if (num_tokens != -1 && num_tokens < needed) {
    throw InvalidArgumentError(fmt::format("{}: Too few tokens to finish the first step: {} (given) vs {} (needed)",
                                           options_.name, num_tokens, needed));
  }
  const int count = num_tokens == -1 ? replicas_to_aggregate_ : num_tokens;
  return add_token_op(shared.scope, "SyncTokenRenew", "init_tokens", shared.tokens, shared.global_step,
                      {{"count", int64_t{count}}});
}

Operation SyncReplicasOptimizer::chief_init_op() const {
  made("chief_init_op()");
  return chief_init_op_;
}

Operation SyncReplicasOptimizer::local_step_init_op() const {
  made("local_step_init_op()");
  return replicas_.back().init;
}

Output SyncReplicasOptimizer::ready_for_local_init_op() const {
  made("ready_for_local_init_op()");
  return ready_op_;
}

const Variable& SyncReplicasOptimizer::local_step() const {
  made("local_step()");
  return replicas_.back().local_step;
}

const FIFOQueue& SyncReplicasOptimizer::sync_token_queue() const {
  return made("sync_token_queue()").tokens;
}

}  // namespace longhaul
