#include "longhaul/binding/bound_torch.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "longhaul/base/error.h"
#include "longhaul/base/log.h"
#include "longhaul/binding/autocast.h"
#include "longhaul/binding/loop/words_of_loop.h"
#include "longhaul/binding/values/lent_tensors.h"
#include "longhaul/binding/values/read_value.h"
#include "longhaul/runtime/aten/aten_tensor.h"

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

// FailedPreconditionError: a step would change averages.
template <typename Values>
void check_not_lent(const Values& values) {
  for (const auto& bound : values) {
    if (!bound.value.tensor.defined() || !is_lent(bound.value.tensor)) continue;
    throw FailedPreconditionError(
        fmt::format("{} has averaged weights, so a step would train the average. End the AveragedWeights before the "
                    "next step",
                    bound.value.name));
  }
}

}  // namespace

BoundTorch::BoundTorch(const torch::nn::Module& module, OverlappedCopies::Copier copier)
    : form_(module), conditions_(module), copies_(std::make_shared<OverlappedCopies>(std::move(copier))) {}

namespace {

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
  set_loop(options);
}

void BoundTorch::set_loop(const TorchTrainingOptions& options) {
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
  conditions_.add_optimizer(name, optimizer);
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
    if (!changes.empty()) log_warning("{}: {}", optimizer.name, self->function_ ? changes : in_words_of_loop(changes));
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

void BoundTorch::add_scheduler(const Scope& scope, int number, const TorchScheduler& scheduler) {
  const std::string name = std::to_string(number);
  const Scope within = scope.within("schedulers");
  KeptValues kept;
  scheduler.keep_in(kept, "schedulers/" + name);
  add_kept(scope.within("kept"), kept);
  if (torch::optim::LRScheduler* counted = scheduler.counted()) {
    add_optional(within, scheduler_value(name, *counted));
    conditions_.add_scheduler(name_of(within) + "/" + name, *counted);
  }
  conditions_.add_settings(name_of(within) + "/" + name, scheduler.settings());
  const auto count = [counted = scheduler.counted(), kept] {
    uint64_t mixture = counted != nullptr ? static_cast<uint64_t>(step_count(*counted)) : 0;
    for (const KeptValue& value : kept.values()) mixture = mixture * 31 + value.look();
    return mixture;
  };
  watch_.add_scheduler(name_of(within) + "/" + name, count, scheduler.unkept());
}

void BoundTorch::add_generator(const Scope& scope, const std::string& name, const at::Generator& generator,
                               bool is_of_device) {
  const std::shared_ptr<GeneratorWatch> watch = GeneratorWatch::of(generator);
  if (is_of_device) {
    add_optional(scope, device_generator_value(name, watch));
  } else {
    add_variables(scope, {generator_value(name, watch)});
  }
  values_.back().generator = watch;
  values_.back().is_own_generator = generator != at::detail::getDefaultCPUGenerator();
  watch_.add_generator("generators/" + name, watch);
}

void BoundTorch::add_state(const Scope& scope, const std::string& name, at::Tensor* tensor) {
  add_optional(scope, state_value(name, tensor));
  state_.add(name_of(scope) + "/" + name, tensor);
}

void BoundTorch::add_kept(const Scope& scope, const KeptValues& kept) {
  const auto self = shared_from_this();
  for (const KeptValue& value : kept.values()) {
    BoundKept::Bound& bound = state_.kept.add(value);
    const auto read = [self, &bound] {
      const Turn turn(self->turn_);
      return BoundKept::read(bound);
    };
    const auto assign = [self, &bound](const Tensor& saved) {
      const Turn turn(self->turn_);
      const at::NoGradGuard no_grad;
      BoundKept::assign(bound, saved);
    };
    const auto check = [self, &bound](const Tensor& saved) {
      if (!kept::is_lacking(saved)) bound.value.check(saved);
    };
    ops::optional_program_value(scope, value.name,
                                {.dtype = value.dtype,
                                 .shape = Shape::unknown_rank(),
                                 .expected = value.read().shape(),
                                 .read = read,
                                 .assign = assign},
                                "", check);
    if (value.tensor != nullptr) state_.add(name_of(scope) + "/" + value.name, value.tensor);
  }
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
  if (bound.inconsistent) throw_inconsistent(bound.value.name, past_.failed_step);
  const at::NoGradGuard no_grad;
  const DeviceStreams::Use streams(tensors_.streams());
  if (&bound != &values_.front()) return read_value(bound.value, *copies_);
  form_.check();  // once in a snapshot
  if (!stepping_) watch_.snapshot();
  Tensor value = read_value(bound.value, *copies_);
  turn.unlock();
  say_findings();
  return value;
}

Tensor BoundTorch::read_initial(Bound& bound) {
  const Turn turn(turn_);
  if (past_.has_stepped) {
    throw FailedPreconditionError(
        fmt::format("{} cannot be initialised: its module has been trained since it was created, and its initial value "
                    "is lost. Restore a checkpoint, or restart the program",
                    bound.value.name));
  }
  if (bound.generator) {  // all of them: those of devices have no initializer
    for (const Bound& other : values_) {
      if (other.generator) other.generator->forget();
    }
  }
  return read(bound);
}

void BoundTorch::assign(Bound& bound, const Tensor& value) {
  const Turn turn(turn_);
  const at::NoGradGuard no_grad;
  const DeviceStreams::Use streams(tensors_.streams());
  copies_->finish();
  bound.value.assign(to_aten(value));
  bound.inconsistent = false;
  watch_.assigned(bound.value.tensor);
}

void BoundTorch::begin_step(int64_t number) {
  if (any_is_lent()) check_not_lent(values_);
  optimizers_.check_groups();
  optimizers_.reinstate_options();
  loss_.begin_step();
  clear_autocast_cache();
  copies_->begin_step();
  watch_.begin(number);
  state_.begin();
  if (const auto& name = state_.kept.written_between()) watch_.kept_was_written_between(*name);
}

void BoundTorch::fail_step(std::string error, bool is_made) {
  std::string abandoned;  // by what; empty: nothing was changed
  if (is_made || watch_.changed() || state_.changed()) {
    abandoned = past_.failed_step = std::move(error);
    past_.has_stepped = true;
    for (Bound& bound : values_) bound.inconsistent = true;
  }
  watch_.abandon();
  state_.kept.abandon(abandoned);
  copies_->abandon_step();
}

void BoundTorch::step(int64_t number, const std::vector<Tensor>& inputs) {
  if (!function_) {
    InLoop::check_counted(in_loop_.get(), number);
    stepping_ = false;
    in_loop_.reset();
  } else {
    const OneStep one(stepping_);
    const Turn turn(turn_);
    run_step(number, inputs);
  }
  say_findings();
}

void BoundTorch::run_step(int64_t number, const std::vector<Tensor>& inputs) {
  std::vector<at::Tensor> tensors;
  for (const Tensor& input : inputs) tensors.push_back(to_aten(input));
  begin_step(number);
  at::Tensor loss;
  try {
    const ProgramInStep in_step;
    const StepOfThread step(number);
    loss = (*function_)({number, tensors});
    loss_.end_step(loss);
  } catch (...) {
    fail_step(fmt::format("step {}: {}", number, first_line_of(std::current_exception())));
    throw;
  }
  end_step(loss);
}

BoundTorch::InLoop::InLoop(BoundTorch& bound, int64_t number) : number(number), turn(bound.turn_) {
  bound.begin_step(number);
  in_step.emplace();
  of_thread.emplace(number);
}

void BoundTorch::InLoop::check_counted(const InLoop* made, int64_t number) {
  if (made == nullptr || made->in_step) {
    throw FailedPreconditionError(
        "the train_op of a program that makes its steps in its own loop was run by something else, such as a hook or a "
        "service that fetches the loss. Only the loop makes steps: fetch what is no step");
  }
  if (made->number == number) return;
  throw FailedPreconditionError(fmt::format(
      "the global step is {}, but the loop has made step {}: something else has changed the global step in between",
      number, made->number));
}

void BoundTorch::begin_in_loop(int64_t number) {
  if (in_loop_) throw InternalError("a step of a loop is begun while another one is under way");
  in_loop_ = std::make_unique<InLoop>(*this, number);
  stepping_ = true;
}

bool BoundTorch::changed_in_loop() const {
  return in_loop_ && watch_.changed();
}

bool BoundTorch::changed_anything_in_loop() const {
  return in_loop_ && (watch_.changed_or_drew() || state_.changed());
}

void BoundTorch::made_in_loop(const at::Tensor& loss) {
  in_loop_->in_step.reset();
  in_loop_->of_thread.reset();
  loss_.end_step(loss);
  end_step(loss);
}

void BoundTorch::leave_in_loop(const std::string& reason) {
  if (!in_loop_) return;
  const bool is_made = !in_loop_->in_step;  // but its run has failed
  fail_step(fmt::format("step {}: {}", in_loop_->number, reason), is_made);
  stepping_ = false;
  in_loop_.reset();
}

void BoundTorch::cancel_in_loop() {
  if (!in_loop_) return;
  watch_.abandon();
  state_.kept.abandon("");
  copies_->abandon_step();
  stepping_ = false;
  in_loop_.reset();
}

RestoredValues BoundTorch::restored() {
  RestoredValues values;
  const auto self = shared_from_this();
  for (Bound& bound : values_) {
    if (bound.generator && !bound.is_own_generator) continue;  // the default generator: the Trainer's affair
    const auto read = [self, &bound] {
      const Turn turn(self->turn_);
      const at::NoGradGuard no_grad;
      return to_tensor(bound.value.read().clone());
    };
    values.add(read, [self, &bound](const Tensor& value) { self->assign(bound, value); }, bound.value.tensor.defined());
  }
  for (BoundKept::Bound& bound : state_.kept.values()) {
    const auto assign = [self, &bound](const Tensor& value) {
      const Turn turn(self->turn_);
      const at::NoGradGuard no_grad;
      BoundKept::assign(bound, value);
    };
    values.add([&bound, self] { return BoundKept::read(bound); }, assign);
  }
  return values;
}

std::map<std::string, std::string> BoundTorch::short_values() {
  const Turn turn(turn_);
  std::map<std::string, std::string> bytes;
  state_.kept.add_short_to(bytes);
  for (const Bound& bound : values_) {
    if (!bound.is_own_generator) continue;
    const at::Tensor state = bound.value.read();
    bytes["generators/" + bound.value.name].assign(static_cast<const char*>(state.data_ptr()), state.nbytes());
  }
  return bytes;
}

void BoundTorch::set_short_values(const std::map<std::string, std::string>& bytes) {
  const Turn turn(turn_);
  state_.kept.assign_short(bytes);
  for (Bound& bound : values_) {
    const auto found = bytes.find("generators/" + bound.value.name);
    if (!bound.is_own_generator || found == bytes.end()) continue;
    const at::Tensor state = at::empty({static_cast<int64_t>(found->second.size())}, at::kByte);
    std::memcpy(state.data_ptr(), found->second.data(), found->second.size());
    bound.value.assign(state);
  }
}

void BoundTorch::end_step(const at::Tensor& loss) {
  past_.has_stepped = true;
  tensors_.streams().note();
  copies_->end_step();
  watch_.end(loss);
  state_.kept.end();
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
  for (const std::string& finding : findings) log_warning("{}", function_ ? finding : in_words_of_loop(finding));
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
