#include "longhaul/binding/torch_training.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <algorithm>

#include "longhaul/binding/bound_torch.h"
#include "longhaul/binding/devices/default_generators.h"
#include "longhaul/binding/loop/torch_loop.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {
namespace {

std::vector<at::Tensor> tensors_of(const torch::nn::Module& module) {
  std::vector<at::Tensor> tensors = module.parameters();
  for (at::Tensor& buffer : module.buffers()) tensors.push_back(std::move(buffer));
  return tensors;
}

void add_others(BoundTorch& bound, const Scope& scope, const torch::nn::Module& module,
                const TorchTrainingOptions& options) {
  int number = 0;
  for (const TorchScheduler& scheduler : options.schedulers) bound.add_scheduler(scope, number++, scheduler);
  bound.add_generator(scope.within("generators"), "cpu", at::detail::getDefaultCPUGenerator());
  for (const auto& [name, generator] : options.generators)
    bound.add_generator(scope.within("generators"), name, generator);
  for (const auto& [name, generator] : default_generators_of(tensors_of(module), options.generators))
    bound.add_generator(scope.within("generators"), name, generator, /*is_of_device=*/true);
  for (const auto& [name, tensor] : options.state) bound.add_state(scope.within("state"), name, tensor);
  bound.add_kept(scope.within("kept"), options.kept);
  if (!options.gradients) return;
  for (const auto& parameter : module.named_parameters())
    bound.add_optional(scope.within("gradients"), gradient_value(parameter.key(), parameter.value()));
}

void check_inputs(const std::vector<Output>& inputs) {
  for (const Output& input : inputs) {
    if (find_scalar_type(input.dtype())) continue;
    throw InvalidArgumentError(fmt::format("{} cannot be an input of a step function: libtorch has no {} tensors",
                                           input.name(), dtype_name(input.dtype())));
  }
}

// What counts the steps: the global step, which one training of a graph counts.
Variable counter(const Scope& scope, const Scope& inner, const TorchTrainingOptions& options) {
  if (!options.counts_global_step) {
    return ops::variable(inner, "steps", Tensor::scalar<int64_t>(0), {.trainable = false});
  }
  const Variable step = ops::global_step(scope);
  for (const Operation& op : scope.graph().operations()) {
    if (op.type() != "ProgramStep" || op.inputs()[0] != step.ref()) continue;
    throw AlreadyExistsError(
        fmt::format("{} already counts the global step, and a second torch_training() would count each step twice. "
                    "Bind one module that has both, with their optimizers, or let this one count its own steps "
                    "(TorchTrainingOptions::counts_global_step)",
                    op.name()));
  }
  return step;
}

// The variables of a bound program, and the operations of its step.
TorchTraining add_training(const Scope& scope, const std::shared_ptr<BoundTorch>& bound, torch::nn::Module& module,
                           const std::vector<torch::optim::Optimizer*>& optimizers,
                           const TorchTrainingOptions& options) {
  TorchTraining training;
  training.model = bound->add_variables(scope, module_values(module));
  for (torch::optim::Optimizer* optimizer : optimizers)
    bound->add_optimizer(scope.sub(optimizer_kind(*optimizer)), *optimizer);
  add_others(*bound, scope, module, options);
  const Scope inner = scope.sub("torch_training");
  bound->add_conditions(inner);
  training.global_step = counter(scope, inner, options);
  const auto ask = [bound](const std::vector<Tensor>&) {
    bound->ask();
    return std::vector<Tensor>();
  };
  const auto loss = [bound](const std::vector<Tensor>&) { return std::vector<Tensor>{bound->loss()}; };
  const Operation made =
      ops::program_step(inner, training.global_step, options.inputs,
                        [bound](int64_t number, const std::vector<Tensor>& inputs) { bound->step(number, inputs); });
  const Scope after = inner.with_control_dependencies({made});
  training.train_op = ops::host_function(after, {}, {}, ask, "train");
  scope.graph().add_to_collection(collections::kTrainOp, training.train_op);
  training.loss = ops::host_function(after, {}, {kFloat}, loss, "loss").output();
  return training;
}

}  // namespace

TorchTraining torch_training(const Scope& scope, torch::nn::Module& module,
                             const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                             const TorchTrainingOptions& options) {
  return torch_training_of(std::make_shared<BoundTorch>(module), scope, module, optimizers, std::move(step), options);
}

TorchTraining torch_training_of(const std::shared_ptr<BoundTorch>& bound, const Scope& scope, torch::nn::Module& module,
                                const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                                const TorchTrainingOptions& options) {
  check_inputs(options.inputs);
  bound->set_step(std::move(step), options);
  return add_training(scope, bound, module, optimizers, options);
}

TorchTraining torch_training(const Scope& scope, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                             TorchStepFunction step, const TorchTrainingOptions& options) {
  return torch_training(scope, module, std::vector{&optimizer}, std::move(step), options);
}

TorchLoop torch_loop(const Scope& scope, torch::nn::Module& module,
                     const std::vector<torch::optim::Optimizer*>& optimizers, const TorchTrainingOptions& options) {
  if (!options.inputs.empty()) {
    throw InvalidArgumentError(fmt::format(
        "TorchTrainingOptions::inputs has {}, but inputs are computed for a step function, and a loop has none: read "
        "the input in the loop",
        options.inputs.front().name()));
  }
  const auto bound = std::make_shared<BoundTorch>(module);
  bound->set_loop(options);
  return TorchLoop(add_training(scope, bound, module, optimizers, options), bound);
}

std::vector<Variable> torch_variables(const Scope& scope, torch::nn::Module& module) {
  return std::make_shared<BoundTorch>(module)->add_variables(scope, module_values(module));
}

void throw_no_module() {
  throw InvalidArgumentError("the module is null: construct it before it is bound");
}

}  // namespace longhaul
