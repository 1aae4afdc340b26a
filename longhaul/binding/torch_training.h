#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "longhaul/ops/state_ops.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

// Puts a libtorch program under supervision: its module and optimizers become variables of a graph, and its own code
// for a step becomes the operation that trains them. No model is needed in the graph:
//
//   torch::nn::Sequential net(...);                                       // unchanged
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
//   Supervisor sv({.graph = &graph, .logdir = "runs/net"});
//   sv.managed_session([&](Session& session) {
//     const Callable train = session.make_callable(training.train_op);
//     while (!sv.should_stop() && ...) train();
//   });
//
// The names in checkpoints are those of libtorch, below the scope's:
//
//   0.weight, bn.running_mean        parameters and buffers, as in named_parameters() and named_buffers()
//   Adam/0.weight/exp_avg            an optimizer's state for a parameter; empty if none
//   Adam/group_0/lr                  its options, which change during training
//   schedulers/0                     how often a scheduler has stepped
//   generators/cpu                   the state of libtorch's default generator after the last step
//   state/KEY, gradients/0.weight    if TorchTrainingOptions ask for them
//   longhaul/optimizer/Adam          its parameter groups, and the options that the program gave them (text)
//   longhaul/conditions/...          not restored, but compared with the first step afterwards (text):
//                                    requires_grad, train() and eval(), dropout rates, a StepLR's own parameters
//
// All of it is restored bit for bit, so a restarted run continues as if it had not been interrupted, provided that a
// step's input depends only on its number. The checkpoint's optimizer options take precedence over the constructor's,
// with a warning if they differ (TorchTrainingOptions::restore_optimizer_options). If the checkpoint is of another
// module, or of an optimizer of another kind or with other groups, the restore lists the mismatches and changes
// nothing.
//
// If a program forgets to bind something, or changes state between steps in a way that a restart does not repeat,
// counters compared before and after each step detect it, and the log says so once, with the remedy
// (docs/guide/libtorch.md, "What a restart cannot know"). The program's own state outside the module is not detected:
// bind it (TorchTrainingOptions::state, ops::external_variable).
//
// Initialising keeps the program's own initial values. Once the step function has run, these no longer exist: then a
// session that finds no checkpoint is refused (FailedPreconditionError).
//
// A snapshot copies all of it inside the gate, at the speed of memory, because libtorch's optimizers write into the
// tensors themselves: a step that is due meanwhile waits (20 ms for 30 million floats on one core). The memory for the
// copies is kept, and the checkpoint is written from there while training continues. Tensors on devices other than the
// CPU are copied to host memory; this has not been tried on any such device. Their default generators are not saved: if
// a step draws from one, bind it by TorchTrainingOptions::generators, as {"cuda", ...}.
//
// A module owned by a shared pointer (any that is not on the stack or a member) lives as long as the graph. Everything
// else that is bound is borrowed and must outlive the graph's sessions and the last save, without being moved: the
// module, the optimizers, the schedulers and their optimizers; the tensors of TorchTrainingOptions::state; everything
// that the step function refers to. Their end cannot be detected. Sessions share all of it: one session at a time. One
// thread runs train_op; any thread may read and save. A module, or a part of it, can be bound only once at a time: if
// two models share parameters, bind a module that contains both, with their optimizers.
namespace longhaul {

// The argument of a step function.
struct TorchStep {
  int64_t number;                         // the global step before this step: 0, 1, ...
  const std::vector<at::Tensor>& inputs;  // TorchTrainingOptions::inputs; read only
};

// Makes one training step and returns its loss, one element (or nothing, if the loss is not fetched). It runs inside
// the gate, where snapshots wait for it, so it should not wait for long, in particular not for input, which can come
// from a queue by TorchTrainingOptions::inputs. It may read variables of the session, but must neither write any nor
// save. Its exceptions are thrown by the run, libtorch's errors as InvalidArgumentError; the step then does not count,
// and the run's other writes (an input's position: ops::group(root, {training.train_op, input.advance})) are not made.
// If it had changed the module by then, or computed gradients, nothing can be saved until a checkpoint is restored.
// Gradient recording is enabled whatever the thread's mode. A function without arguments is accepted too.
class TorchStepFunction {
 public:
  template <std::invocable<const TorchStep&> Function>
  TorchStepFunction(Function function) : function_(std::move(function)) {}
  template <std::invocable Function>
  TorchStepFunction(Function function)
      : function_([function = std::move(function)](const TorchStep&) mutable { return function(); }) {}
  at::Tensor operator()(const TorchStep& step) const { return function_(step); }

 private:
  std::function<at::Tensor(const TorchStep&)> function_;
};

struct TorchTrainingOptions {
  std::vector<Output> inputs{};  // computed before the step and passed to it: placeholders, a queue's batch
  std::vector<torch::optim::LRScheduler*> schedulers{};  // that the step function steps
  std::map<std::string, at::Generator> generators{};     // the program's own, besides the default: "generators/KEY"
  // The program's own tensors that steps pass on to each other: a recurrent network's state, a replay buffer. The step
  // function may write to them and replace them; the dtype must stay the same. Their values are saved without their
  // autograd history: detach() them. Borrowed. "state/KEY"
  std::map<std::string, at::Tensor*> state{};
  // Saves each parameter's gradient, for step functions that accumulate gradients over several steps: "gradients/NAME".
  bool gradients = false;
  // false: a restart uses the rates and other options with which the program constructs its optimizers.
  bool restore_optimizer_options = true;
  // The step function, or the loop, sets the learning rates from the step's number: their changes do not indicate an
  // unbound scheduler.
  bool rates_follow_step = false;
  // The step function updates parameters itself, or its optimizer's state is bound in another way
  // (ops::external_variable): updates do not indicate an unbound optimizer.
  bool updates_without_optimizer = false;
  // false: the steps are counted in a separate variable. For a second bound program in a graph.
  bool counts_global_step = true;
};

struct TorchTraining {
  Operation train_op;           // runs the step function, then adds one to the global step
  Output loss;                  // of the run's step (fetching it makes one, too): a float scalar
  Variable global_step;         // or the variable that counts the steps instead
  std::vector<Variable> model;  // the module's parameters and buffers
};

// InvalidArgumentError: a tensor whose dtype checkpoints lack; an optimizer of an unknown kind (SGD, Adam, AdamW,
// RMSprop and Adagrad are known), or with a parameter that is not the module's. AlreadyExistsError: a name is taken in
// the scope (give each bound program its own scope); another bound program of the graph counts the global step; or a
// tensor of the module is bound in a graph that still exists. If a parameter or buffer is registered, replaced or
// removed afterwards, initialising or saving the model throws FailedPreconditionError.
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

}  // namespace longhaul
