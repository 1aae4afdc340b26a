#include "longhaul/binding/torch_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "longhaul/binding/bound_tensors.h"
#include "longhaul/binding/change_watch.h"
#include "longhaul/binding/torch_values.h"
#include "longhaul/ops/program_variable.h"
#include "longhaul/runtime/aten_tensor.h"

namespace longhaul {
namespace {

// What was bound, and whose turn it is: the step function's, or that of a thread that reads or assigns a value. The
// operations of the graph share it.
class BoundTorch : public std::enable_shared_from_this<BoundTorch> {
 public:
  explicit BoundTorch(const torch::nn::Module& module) : form_(module) {}

  // Adds a variable for each value.
  std::vector<Variable> add_variables(const Scope& scope, std::vector<TorchValue> values);
  void set_step(TorchStepFunction function) { function_.emplace(std::move(function)); }
  void add_optimizer(const torch::optim::Optimizer& optimizer) {
    optimizers_.push_back({&optimizer, group_sizes(optimizer)});
  }

  void step(int64_t number, const std::vector<Tensor>& inputs);
  Tensor loss();

 private:
  using Turn = std::lock_guard<std::recursive_mutex>;  // recursive: a step function may read a variable

  struct Bound {
    TorchValue value;
    bool torn = false;  // by a step that failed halfway
  };
  struct BoundOptimizer {
    const torch::optim::Optimizer* optimizer;
    std::vector<size_t> group_sizes;
  };

  Tensor read(Bound& bound);
  Tensor read_initial(Bound& bound);
  void assign(Bound& bound, const Tensor& value);
  void check_callable() const;
  void mark_torn();

  std::recursive_mutex turn_;
  const ModuleForm form_;
  std::deque<Bound> values_;
  BoundTensors tensors_;  // the module's parameters and buffers
  ChangeWatch watch_;     // over them, during a step
  std::vector<BoundOptimizer> optimizers_;
  std::optional<TorchStepFunction> function_;
  at::Tensor loss_;
  bool stepping_ = false;
  bool has_stepped_ = false;  // the module is no longer as the program made it
};

std::vector<Variable> BoundTorch::add_variables(const Scope& scope, std::vector<TorchValue> values) {
  std::vector<Variable> variables;
  for (TorchValue& value : values) {
    if (value.tensor.defined()) {
      tensors_.add(value.name, value.tensor);
      watch_.add(value.tensor);
    }
    Bound& bound = values_.emplace_back(Bound{std::move(value)});
    const auto self = shared_from_this();
    variables.push_back(
        ops::program_variable(scope, bound.value.name,
                              {.dtype = bound.value.dtype,
                               .shape = bound.value.shape,
                               .read = [self, &bound] { return self->read(bound); },
                               .assign = [self, &bound](const Tensor& assigned) { self->assign(bound, assigned); },
                               .initial = [self, &bound] { return self->read_initial(bound); }},
                              bound.value.trainable));
  }
  return variables;
}

Tensor BoundTorch::read(Bound& bound) {
  const Turn turn(turn_);
  if (bound.torn) {
    throw FailedPreconditionError(fmt::format(
        "{}: a step failed when it had changed some of the module, so there is no state to save; restore a checkpoint",
        bound.value.name));
  }
  if (&bound == &values_.front()) form_.check();  // once in a snapshot
  const at::NoGradGuard no_grad;
  return to_tensor(bound.value.read());
}

Tensor BoundTorch::read_initial(Bound& bound) {
  const Turn turn(turn_);
  if (has_stepped_) {
    throw FailedPreconditionError(fmt::format(
        "{} cannot be initialised: its module has been trained since it was made, and its first value is gone. Restore "
        "a checkpoint, or start the program again",
        bound.value.name));
  }
  return read(bound);
}

void BoundTorch::assign(Bound& bound, const Tensor& value) {
  const Turn turn(turn_);
  const at::NoGradGuard no_grad;
  bound.value.assign(to_aten(value));
  bound.torn = false;
}

void BoundTorch::check_callable() const {
  if (stepping_) throw FailedPreconditionError("a step function must not run the operation that it is called by");
  for (const auto& [optimizer, sizes] : optimizers_) {
    if (has_groups(*optimizer, sizes)) continue;
    throw FailedPreconditionError(fmt::format(
        "the optimizer ({}) was given parameters after it was bound, and they would not be saved: bind it in "
        "its final form",
        optimizer_kind(*optimizer)));
  }
}

void BoundTorch::mark_torn() {
  has_stepped_ = true;
  for (Bound& bound : values_) bound.torn = true;
}

void BoundTorch::step(int64_t number, const std::vector<Tensor>& inputs) {
  const Turn turn(turn_);
  check_callable();
  std::vector<at::Tensor> tensors;
  for (const Tensor& input : inputs) tensors.push_back(to_aten(input));
  watch_.begin();
  stepping_ = true;
  try {
    const at::Tensor loss = (*function_)({number, tensors});
    loss_ = loss.defined() ? loss.variable_data() : loss;  // without what made it
  } catch (...) {
    stepping_ = false;
    if (watch_.changed()) mark_torn();
    throw;
  }
  stepping_ = false;
  has_stepped_ = true;
}

Tensor BoundTorch::loss() {
  const Turn turn(turn_);
  if (loss_.defined() && loss_.numel() == 1) return to_tensor(loss_.to(at::kFloat).reshape({}));
  throw InvalidArgumentError(
      fmt::format("the loss was fetched, and the step function returned {}, not one element",
                  loss_.defined() ? "a tensor of shape " + shape_of(loss_).to_string() : "an undefined tensor"));
}

void add_optimizer(BoundTorch& bound, const Scope& scope, torch::optim::Optimizer& optimizer,
                   const torch::nn::Module& module) {
  std::vector<TorchValue> values = optimizer_values(optimizer, module);
  bound.add_variables(scope.sub(optimizer_kind(optimizer)), std::move(values));
  bound.add_optimizer(optimizer);
}

void add_others(BoundTorch& bound, const Scope& scope, const TorchTrainingOptions& options) {
  std::vector<TorchValue> schedulers, generators;
  for (torch::optim::LRScheduler* scheduler : options.schedulers)
    schedulers.push_back(scheduler_value(std::to_string(schedulers.size()), *scheduler));
  generators.push_back(generator_value("cpu", at::detail::getDefaultCPUGenerator()));
  for (const auto& [name, generator] : options.generators) generators.push_back(generator_value(name, generator));
  bound.add_variables(scope.within("schedulers"), std::move(schedulers));
  bound.add_variables(scope.within("generators"), std::move(generators));
}

void check_inputs(const std::vector<Output>& inputs) {
  for (const Output& input : inputs) {
    if (find_scalar_type(input.dtype())) continue;
    throw InvalidArgumentError(fmt::format("{} cannot be an input of a step function: libtorch has no {} tensors",
                                           input.name(), dtype_name(input.dtype())));
  }
}

}  // namespace

TorchTraining torch_training(const Scope& scope, torch::nn::Module& module,
                             const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                             const TorchTrainingOptions& options) {
  check_inputs(options.inputs);
  const auto bound = std::make_shared<BoundTorch>(module);
  bound->set_step(std::move(step));
  TorchTraining training;
  training.model = bound->add_variables(scope, module_values(module));
  for (torch::optim::Optimizer* optimizer : optimizers) add_optimizer(*bound, scope, *optimizer, module);
  add_others(*bound, scope, options);
  training.global_step = ops::global_step(scope);
  const Scope inner = scope.sub("torch_training");
  training.train_op =
      ops::program_step(inner, training.global_step, options.inputs,
                        [bound](int64_t number, const std::vector<Tensor>& inputs) { bound->step(number, inputs); });
  scope.graph().add_to_collection(collections::kTrainOp, training.train_op);
  const auto loss = [bound](const std::vector<Tensor>&) { return std::vector<Tensor>{bound->loss()}; };
  training.loss =
      ops::host_function(inner.with_control_dependencies({training.train_op}), {}, {kFloat}, loss, "loss").output();
  return training;
}

TorchTraining torch_training(const Scope& scope, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                             TorchStepFunction step, const TorchTrainingOptions& options) {
  return torch_training(scope, module, std::vector{&optimizer}, std::move(step), options);
}

std::vector<Variable> torch_variables(const Scope& scope, torch::nn::Module& module) {
  return std::make_shared<BoundTorch>(module)->add_variables(scope, module_values(module));
}

}  // namespace longhaul
