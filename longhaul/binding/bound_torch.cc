#include "longhaul/binding/bound_torch.h"

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/base/step_of_thread.h"
#include "longhaul/runtime/aten/aten_tensor.h"
#include "longhaul/runtime/state/step_gate.h"

namespace longhaul {
namespace {

// libtorch's errors have a line for each call that led to them.
std::string first_line_of(const std::exception_ptr& error) {
  const std::string text = message_of(error);
  return text.substr(0, text.find('\n'));
}

// The step that is under way.
class OneStep {
 public:
  explicit OneStep(std::atomic<bool>& stepping) : stepping_(stepping) {
    if (!stepping_.exchange(true)) return;
    throw FailedPreconditionError(
        "train_op of a bound program was run while a run of it was under way, in another thread or in the step "
        "function itself. Both would have made the step of one number. Run train_op in one thread");
  }
  ~OneStep() { stepping_ = false; }
  OneStep(const OneStep&) = delete;

 private:
  std::atomic<bool>& stepping_;
};

}  // namespace

BoundTorch::BoundTorch(const torch::nn::Module& module, OverlappedCopies::Copier copier)
    : form_(module), conditions_(module), copies_(std::make_shared<OverlappedCopies>(std::move(copier))) {}

namespace {

// In a snapshot its bytes may come later.
at::Tensor read_of(const TorchValue& value, OverlappedCopies& copies) {
  SnapshotMoment* const moment = SnapshotMoment::of_this_thread();
  PendingCopy* const later = moment != nullptr && value.copy_later ? copies.copies_of(*moment) : nullptr;
  return later != nullptr ? value.copy_later(*later) : value.read();
}

std::string name_of(const Scope& scope) {
  std::string name = scope.variable_prefix();
  if (name.ends_with('/')) name.pop_back();
  return name;
}

}  // namespace

BoundTorch::Bound& BoundTorch::add(TorchValue value) {
  if (value.tensor.defined()) {
    tensors_.add(value.name, value.tensor);
    if (value.is_parameter) {
      watch_.add_parameter(value.name, value.tensor);
    } else {
      watch_.add_buffer(value.name, value.tensor);
    }
  }
  return values_.emplace_back(Bound{std::move(value)});
}

ExternalValue BoundTorch::access_to(Bound& bound) {
  const auto self = shared_from_this();
  return {.dtype = bound.value.dtype,
          .shape = bound.value.shape,
          .expected = bound.value.expected,
          .read = [self, &bound] { return self->read(bound); },
          .assign = [self, &bound](const Tensor& assigned) { self->assign(bound, assigned); },
          .initial = [self, &bound] { return self->read_initial(bound); }};
}

std::vector<Variable> BoundTorch::add_variables(const Scope& scope, std::vector<TorchValue> values) {
  std::vector<Variable> variables;
  for (TorchValue& value : values) {
    Bound& bound = add(std::move(value));
    variables.push_back(ops::external_variable(scope, bound.value.name, access_to(bound), bound.value.trainable));
  }
  return variables;
}

void BoundTorch::add_optional(const Scope& scope, TorchValue value) {
  Bound& bound = add(std::move(value));
  ops::optional_program_value(scope, bound.value.name, access_to(bound));
}

void BoundTorch::set_step(TorchStepFunction function, const TorchTrainingOptions& options) {
  function_.emplace(std::move(function));
  optimizers_.restores_options(options.restore_optimizer_options);
  if (options.overlap_snapshots) copies_->begin_to_overlap();
  watch_.declare({.gradients = options.gradients,
                  .rates_follow_step = options.rates_follow_step,
                  .updates_without_optimizer = options.updates_without_optimizer});
}

void BoundTorch::add_optimizer(const Scope& scope, torch::optim::Optimizer& optimizer) {
  const std::string name = name_of(scope);
  std::vector<TorchValue> values = optimizer_values(optimizer, form_.module());
  BoundOptimizers::Bound& bound = optimizers_.add(name, optimizer, form_.module(), values);
  add_variables(scope, std::move(values));
  watch_.add_optimizer(name, optimizer);
  add_record(scope, bound);
}

void BoundTorch::add_record(const Scope& scope, BoundOptimizers::Bound& optimizer) {
  const auto self = shared_from_this();
  const auto read = [self, &optimizer] {
    const Turn turn(self->turn_);
    return to_tensor(optimizer.recorded.to_text());
  };
  const auto assign = [self, &optimizer](const Tensor& value) {
    const OptimizerRecord stored(to_aten(value));
    std::string changes;
    {
      const Turn turn(self->turn_);
      changes = self->optimizers_.restored(optimizer, stored);
    }
    if (!changes.empty()) log_warning("{}: {}", optimizer.name, changes);
  };
  const auto check = [&optimizer, self](const Tensor& value) {
    const OptimizerRecord stored(to_aten(value));
    if (!stored.empty()) optimizer.made.check_groups(optimizer.name, stored);
  };
  ops::optional_program_value(scope, "groups",
                              {.dtype = kUInt8,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{optimizer.made.to_text().numel()},
                               .read = read,
                               .assign = assign},
                              "longhaul/optimizer/" + optimizer.name, check);
}

void BoundTorch::add_scheduler(const Scope& scope, const std::string& name, torch::optim::LRScheduler& scheduler) {
  add_optional(scope, scheduler_value(name, scheduler));
  watch_.add_scheduler(scheduler);
  conditions_.add_scheduler(name_of(scope) + "/" + name, scheduler);
}

void BoundTorch::add_generator(const Scope& scope, const std::string& name, const at::Generator& generator) {
  const std::shared_ptr<GeneratorWatch> watch = GeneratorWatch::of(generator);
  add_variables(scope, {generator_value(name, watch)});
  values_.back().generator = watch;
  watch_.add_generator("generators/" + name, watch);
}

void BoundTorch::add_state(const Scope& scope, const std::string& name, at::Tensor* tensor) {
  add_optional(scope, state_value(name, tensor));
  state_.add(name_of(scope) + "/" + name, tensor);
}

void BoundTorch::add_conditions(const Scope& scope) {
  const auto self = shared_from_this();
  const auto read = [self] {
    const Turn turn(self->turn_);
    return to_tensor(self->conditions_.record());
  };
  const auto assign = [self](const Tensor& record) {
    const Turn turn(self->turn_);
    self->conditions_.restore(to_aten(record));
  };
  ops::optional_program_value(scope, "conditions",
                              {.dtype = kUInt8,
                               .shape = Shape::unknown_rank(),
                               .expected = Shape{conditions_.record_size()},
                               .read = read,
                               .assign = assign},
                              "longhaul/conditions/" + name_of(scope));
}

Tensor BoundTorch::read(Bound& bound) {
  std::unique_lock<std::recursive_mutex> turn(turn_);
  if (bound.inconsistent) {
    throw FailedPreconditionError(
        fmt::format("{}: a step failed after it had changed part of the module ({}), so there is no consistent state "
                    "to save. Restore a checkpoint",
                    bound.value.name, failed_step_));
  }
  const at::NoGradGuard no_grad;
  if (&bound != &values_.front()) return to_tensor(read_of(bound.value, *copies_));
  form_.check();  // once in a snapshot
  if (!stepping_) watch_.snapshot();
  Tensor value = to_tensor(read_of(bound.value, *copies_));
  turn.unlock();
  say_findings();
  return value;
}

Tensor BoundTorch::read_initial(Bound& bound) {
  const Turn turn(turn_);
  if (has_stepped_) {
    throw FailedPreconditionError(
        fmt::format("{} cannot be initialised: its module has been trained since it was created, and its initial value "
                    "is lost. Restore a checkpoint, or restart the program",
                    bound.value.name));
  }
  if (bound.generator) bound.generator->forget();
  return read(bound);
}

void BoundTorch::assign(Bound& bound, const Tensor& value) {
  const Turn turn(turn_);
  const at::NoGradGuard no_grad;
  copies_->finish();
  bound.value.assign(to_aten(value));
  bound.inconsistent = false;
  watch_.assigned(bound.value.tensor);
}

void BoundTorch::check_callable() const {
  optimizers_.check_groups();
}

void BoundTorch::mark_inconsistent(std::string by) {
  failed_step_ = std::move(by);
  has_stepped_ = true;
  for (Bound& bound : values_) bound.inconsistent = true;
}

void BoundTorch::step(int64_t number, const std::vector<Tensor>& inputs) {
  {
    const OneStep one(stepping_);
    const Turn turn(turn_);
    check_callable();
    optimizers_.reinstate_options();
    loss_.begin_step();
    run_step(number, inputs);
  }
  say_findings();
}

void BoundTorch::run_step(int64_t number, const std::vector<Tensor>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const Tensor& input : inputs) tensors.push_back(to_aten(input));
  copies_->begin_step();
  watch_.begin(number);
  state_.begin();
  at::Tensor loss;
  try {
    const StepGate::ProgramInStep in_step;
    const StepOfThread step(number);
    loss = (*function_)({number, tensors});
    loss_.end_step(loss);
  } catch (...) {
    if (watch_.changed() || state_.changed()) {
      mark_inconsistent(fmt::format("step {}: {}", number, first_line_of(std::current_exception())));
    }
    watch_.abandon();
    copies_->abandon_step();
    throw;
  }
  has_stepped_ = true;
  copies_->end_step();
  take_findings_of_step(loss);
}

void BoundTorch::take_findings_of_step(const at::Tensor& loss) {
  watch_.end(loss);
  conditions_.end_step();
  if (const std::optional<std::string> name = state_.with_history()) watch_.carries_history(*name);
}

void BoundTorch::say_findings() {
  std::vector<std::string> findings;
  {
    const Turn turn(turn_);
    findings = watch_.take_findings();
    if (std::string changes = conditions_.take_changes(); !changes.empty()) findings.push_back(std::move(changes));
  }
  for (std::string& finding : copies_->take_findings()) findings.push_back(std::move(finding));
  for (const std::string& finding : findings) log_warning("{}", finding);
}

void BoundTorch::ask() {
  const Turn turn(turn_);
  loss_.ask();
}

Tensor BoundTorch::loss() {
  {
    const Turn turn(turn_);
    if (loss_.fetched()) watch_.fetched_loss_alone();
  }
  say_findings();
  const Turn turn(turn_);
  return loss_.value();
}

}  // namespace longhaul
