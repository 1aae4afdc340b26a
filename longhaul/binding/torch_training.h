#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/binding/kept_values.h"
#include "longhaul/binding/torch_scheduler.h"
#include "longhaul/ops/state_ops.h"

namespace torch::nn {
class Module;
template <typename Contained>
class ModuleHolder;
}  // namespace torch::nn
namespace torch::optim {
class Optimizer;
}

// Puts a libtorch program under supervision: its module and optimizers become variables of a graph, and its own code
// for a step becomes the operation that trains them. No model is needed in the graph:
//
//   Preemption preemption;                                                // SIGTERM: save, end with status 75
//   torch::nn::Sequential net(torch::nn::Linear(784, 10));                // unchanged
//   torch::optim::Adam adam(net->parameters(), 1e-3);
//   Graph graph;
//   const TorchTraining training = torch_training(Scope(graph), *net, adam, [&](const TorchStep& step) {
//     adam.zero_grad();                                                   // unchanged: the body of the loop
//     const torch::Tensor loss = loss_of(net, batch(step.number));
//     loss.backward();
//     adam.step();
//     return loss;
//   });
//   summary::scalar(Scope(graph), "loss", training.loss);
//   Supervisor sv({.graph = &graph, .logdir = "runs/net", .chief = {.preemption = &preemption}});
//   sv.managed_session([&](Session& session) {
//     const Callable train = session.make_callable(training.train_op);
//     while (!sv.should_stop() && session.run(training.global_step).item<int64_t>() < last_step) train();
//   });
//   return preemption.exit_status();
//
// The names in checkpoints are those of libtorch, below the scope's:
//
//   0.weight, bn.running_mean        parameters and buffers, as in named_parameters() and named_buffers()
//   Adam/0.weight/exp_avg            an optimizer's state for a parameter; empty if none
//   Adam/group_0/lr                  its options, which change during training
//   schedulers/0                     how often a scheduler has stepped; its other state is below kept/schedulers/0
//   generators/cpu                   the state of libtorch's default generator on the CPU after the last step
//   generators/cuda_0                the same of the first GPU that the module is on; a checkpoint may lack it
//   state/KEY, gradients/0.weight    if TorchTrainingOptions request them
//   kept/NAME                        the program's own values: TorchTrainingOptions::kept
//   longhaul/optimizer/Adam          its parameter groups, and the options that the program gave them (text)
//   longhaul/conditions/...          not restored, but compared with the first step afterwards (text):
//                                    requires_grad, train() and eval(), dropout rates, parameters of StepLR and
//                                    ReduceLROnPlateauScheduler, LBFGS's line search
//
// Everything is restored bit for bit, so a restarted run continues as if it had not been interrupted, provided that a
// step's input depends only on its number. The checkpoint's optimizer options take precedence over the constructor's,
// with a warning if they differ (TorchTrainingOptions::restore_optimizer_options). If the checkpoint belongs to another
// module, or to an optimizer of another kind or with other groups, the restore fails with a list of the mismatches and
// changes nothing.
//
// If a program forgets to bind something, or changes state between steps in a way that a restart does not repeat, the
// library detects this by comparing counters before and after each step, and logs it once, with the remedy
// (docs/guide/restarts.md). It cannot detect the program's own state outside the module: bind that
// (TorchTrainingOptions::state, TorchTrainingOptions::kept).
//
// Initialising keeps the program's own initial values. Once the step function has run, these values are gone, so a
// later session that finds no checkpoint is refused (FailedPreconditionError).
//
// A snapshot copies everything, because libtorch's optimizers update tensors in place. Inside the gate it copies what
// is small; a thread copies the rest while the next step computes, and each tensor is copied before an operator writes
// to it. The checkpoint is written from the copies, whose memory is kept for the next snapshot. Writes that libtorch
// does not announce (through data_ptr()) are found, the snapshot is taken again, and training waits for copies from
// then on; those of few elements may stay unnoticed (TorchTrainingOptions::overlap_snapshots; docs/guide/libtorch.md,
// "Cost"). Training also waits for the copies of the first snapshot, and of one that the training thread itself
// requests. On devices other than the CPU a stream of its own copies; a stream that is about to write to a tensor
// waits for its copy, on the device, and the host for none. Tests have a fake device for this; no GPU was tried yet.
//
// A module owned by a shared pointer (not one on the stack or a member) is kept alive by the graph. Everything else
// that is bound is borrowed and must outlive the graph's sessions and the last save, without being moved: the module,
// the optimizers, the schedulers and their optimizers; the tensors of TorchTrainingOptions::state; everything that the
// step function refers to. The library cannot detect that one of them was destroyed. All sessions share these objects,
// so use one session at a time. One thread runs train_op; any thread may read and save. A module, or a part of it, can
// be bound only once at a time: if two models share parameters, bind a module that contains both, with their
// optimizers.
namespace longhaul {

// The argument of a step function.
struct TorchStep {
  int64_t number;                         // the global step before this step: 0, 1, ...
  const std::vector<at::Tensor>& inputs;  // TorchTrainingOptions::inputs; read only
};

// Makes one training step and returns its loss, a tensor with one element (or nothing, if the loss is not fetched). It
// runs inside the gate, where snapshots wait for it, so it should not block for long. In particular it should not wait
// for input; take that from a queue through TorchTrainingOptions::inputs. It may read variables of the session, but
// must not write any, and must not save. The run throws its exceptions, libtorch's errors as InvalidArgumentError.
// After an exception the step does not count, and the run's other writes (an input's position: ops::group(root,
// {training.train_op, input.advance})) are not made. If it had changed the module by then, or computed gradients,
// nothing can be saved until a checkpoint is restored. Gradient recording is enabled, whatever mode the thread is in. A
// function without arguments is accepted too.
class TorchStepFunction {
 public:
  template <std::invocable<const TorchStep&> Function>
  TorchStepFunction(Function function) : function_(std::move(function)) {
    static_assert(returns_tensor<std::invoke_result_t<Function&, const TorchStep&>>,
                  "a step function returns at::Tensor: its loss");
  }
  template <std::invocable Function>
  TorchStepFunction(Function function)
      : function_([function = std::move(function)](const TorchStep&) mutable { return function(); }) {
    static_assert(returns_tensor<std::invoke_result_t<Function&>>, "a step function returns at::Tensor: its loss");
  }
  at::Tensor operator()(const TorchStep& step) const { return function_(step); }

 private:
  template <class Result>
  static constexpr bool returns_tensor = std::is_convertible_v<Result, at::Tensor>;
  std::function<at::Tensor(const TorchStep&)> function_;
};

struct TorchTrainingOptions {
  std::vector<Output> inputs{};              // computed before the step and passed to it: placeholders, a queue's batch
  std::vector<TorchScheduler> schedulers{};  // borrowed; the step function steps them
  // The program's own, besides the default ones of the CPU and of the module's devices: "generators/KEY"
  std::map<std::string, at::Generator> generators{};
  // The program's own tensors that carry over from step to step: a recurrent network's state, a replay buffer. The step
  // function may write to them and replace them; the dtype must stay the same. Their values are saved without their
  // autograd history: detach() them. Borrowed. "state/KEY"
  std::map<std::string, at::Tensor*> state{};
  // The program's own values of other types, too: counters, metrics, standard generators, averages. "kept/NAME"
  KeptValues kept{};
  // Saves each parameter's gradient, for step functions that accumulate gradients over several steps: "gradients/NAME".
  bool gradients = false;
  // false: a restart uses the rates and other options with which the program constructs its optimizers.
  bool restore_optimizer_options = true;
  // true: the step function, or the loop, computes the learning rates from the step's number. Changed rates then do not
  // count as a sign of an unbound scheduler.
  bool rates_follow_step = false;
  // true: the step function updates parameters itself, or its optimizer's state is bound in another way
  // (ops::external_variable). Updates then do not count as a sign of an unbound optimizer.
  bool updates_without_optimizer = false;
  // false: training waits for all copies of a snapshot, instead of having most of them made during the next step. For
  // programs that write to a few elements of parameters, or of their optimizers' state, in ways that libtorch does not
  // announce, and not in every step (docs/guide/libtorch.md, "Cost"). Other unannounced writes are found.
  bool overlap_snapshots = true;
  // false: the steps are counted in a separate variable. For a second bound program in a graph.
  bool counts_global_step = true;
};

struct TorchTraining {
  Operation train_op;           // runs the step function, then adds one to the global step
  Output loss;                  // of the run's step, a float scalar; fetching it makes a step, too
  Variable global_step;         // or the separate variable (counts_global_step = false)
  std::vector<Variable> model;  // the module's parameters and buffers
};

// InvalidArgumentError: a tensor has a dtype that checkpoints lack; an optimizer is of an unknown kind (known are SGD,
// Adam, AdamW, RMSprop, Adagrad and LBFGS; register_optimizer() makes others known), or has a parameter that is not the
// module's. AlreadyExistsError: a name is taken in the scope (give each bound program its own scope); another bound
// program of the graph counts the global step; or a tensor of the module is bound in a graph that still exists. If a
// parameter or buffer is registered, replaced or removed afterwards, initialising or saving the model throws
// FailedPreconditionError.
TorchTraining torch_training(const Scope& scope, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                             TorchStepFunction step, const TorchTrainingOptions& options = {});
// With several optimizers, or with none.
TorchTraining torch_training(const Scope& scope, torch::nn::Module& module,
                             const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                             const TorchTrainingOptions& options = {});

// Binds only the parameters and buffers, without a training step: for a program that evaluates a checkpoint.
//
//   const auto model = torch_variables(Scope(graph), *net);
//   Saver({.var_list = std::vector<SaveEntry>(model.begin(), model.end())}).restore(*session, prefix);
std::vector<Variable> torch_variables(const Scope& scope, torch::nn::Module& module);

// The module of a holder, which torch::nn::Linear and TORCH_MODULE's classes are. InvalidArgumentError: it has none
// yet.
template <typename Contained>
torch::nn::Module& module_in(const torch::nn::ModuleHolder<Contained>& holder);
[[noreturn]] void throw_no_module();

// The same with the holder itself: `net` in place of `*net`.
template <typename Contained>
TorchTraining torch_training(const Scope& scope, const torch::nn::ModuleHolder<Contained>& module,
                             torch::optim::Optimizer& optimizer, TorchStepFunction step,
                             const TorchTrainingOptions& options = {}) {
  return torch_training(scope, module_in(module), optimizer, std::move(step), options);
}
template <typename Contained>
TorchTraining torch_training(const Scope& scope, const torch::nn::ModuleHolder<Contained>& module,
                             const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                             const TorchTrainingOptions& options = {}) {
  return torch_training(scope, module_in(module), optimizers, std::move(step), options);
}
template <typename Contained>
std::vector<Variable> torch_variables(const Scope& scope, const torch::nn::ModuleHolder<Contained>& module) {
  return torch_variables(scope, module_in(module));
}

template <typename Contained>
torch::nn::Module& module_in(const torch::nn::ModuleHolder<Contained>& holder) {
  if (holder.is_empty()) throw_no_module();
  return *holder.ptr();
}

}  // namespace longhaul
