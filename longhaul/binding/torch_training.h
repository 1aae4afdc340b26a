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

// A libtorch program under supervision: its module and its optimizers become variables of a graph, and its own code for
// a step the operation that trains them. It needs no model in the graph:
//
//   torch::nn::Sequential net(...);                                       // as it was
//   torch::optim::Adam adam(net->parameters(), 1e-3);
//   Graph graph;
//   const TorchTraining training = torch_training(Scope(graph), *net, adam, [&](const TorchStep& step) {
//     adam.zero_grad();                                                   // as it was: the body of the loop
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
//   Adam/0.weight/exp_avg            what an optimizer keeps for a parameter; without elements where it has nothing
//   Adam/group_0/lr                  its options, which change while it trains
//   schedulers/0                     how often a scheduler has stepped
//   generators/cpu                   the state of libtorch's default generator, as the last step left it
//   state/KEY, gradients/0.weight    where TorchTrainingOptions say so
//   longhaul/optimizer/Adam          its groups of parameters, and what options the program gave them (text)
//   longhaul/conditions/...          what no restore sets, and the first step after one is compared with (text):
//                                    requires_grad, train() and eval(), dropout rates, a StepLR's own parameters
//
// All of it comes back bit for bit, so a training that starts again goes on as if it had not been interrupted, if what
// a step works on follows from its number. Of options the checkpoint's count, not those of the constructor, and a
// warning says so where they differ (TorchTrainingOptions::restore_optimizer_options). Of a checkpoint of another
// module, or of an optimizer of another kind or with other groups, a restore says what does not fit and changes
// nothing.
//
// What a program leaves out, or does between steps so that a restart does not repeat it, is seen by counters that are
// compared before and after each step, and said once in the log, with the remedy (docs/guide/libtorch.md, "What a
// restart cannot know"). Not seen is state of the program's own that is no part of the module: bind it
// (TorchTrainingOptions::state, ops::external_variable).
//
// Initialising keeps what the program has made. Once the step function has run, nobody has that any more: then a
// session that finds no checkpoint is refused (FailedPreconditionError).
//
// A snapshot copies all of it inside the gate, at the speed of memory, because libtorch's optimizers write into the
// tensors themselves: a step that is due meanwhile waits (20 ms for 30 million floats on one core). The memory for the
// copies is kept, and the checkpoint is written from there while the training goes on. Tensors on other devices than
// the CPU are copied to the host's memory; that was not tried on any such device. Their default generators are not
// saved: where a step draws from one, bind it by TorchTrainingOptions::generators, as {"cuda", ...}.
//
// A module that a shared pointer owns (all but those on the stack, or members of something) lives as long as the graph.
// All else that is bound here is borrowed and must outlive the sessions of the graph and the last save, in place: the
// module, the optimizers, the schedulers, and the optimizers that the schedulers have; the tensors of
// TorchTrainingOptions::state; what the step function refers to. Nothing can tell when they end. The sessions share all
// of it: one session at a time. One thread runs train_op; any thread may read and save. A module, or a part of it, is
// bound once at a time: for two trainings that share parameters bind a module that has both, with their optimizers.
namespace longhaul {

// What a step function is called with.
struct TorchStep {
  int64_t number;                         // the global step before this step: 0, 1, ...
  const std::vector<at::Tensor>& inputs;  // TorchTrainingOptions::inputs, not to be written into
};

// Makes one training step and returns its loss, one element (or nothing, where nobody fetches the loss). It runs inside
// the gate that snapshots wait at, so it should not wait for long: not for input, which can come from a queue by
// TorchTrainingOptions::inputs. It may read variables of the session, and must neither write any nor save. What it
// throws comes out of the run, libtorch's errors as InvalidArgumentError; the step does not count then, and what else
// the run would have written (an input's position: ops::group(root, {training.train_op, input.advance})) is not
// written. If it had changed the module by that time, or computed gradients, there is no state to save until a
// checkpoint is restored. It records for its backward whatever the mode of the thread. A function of no arguments will
// do as well.
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
  std::vector<Output> inputs;  // computed before the step and handed to its function: placeholders, a batch of a queue
  std::vector<torch::optim::LRScheduler*> schedulers;  // that the step function steps
  std::map<std::string, at::Generator> generators;     // of the program's own, beside the default one: "generators/KEY"
  // Tensors of the program's own that steps hand on to each other: a recurrent network's state, a buffer of
  // experience. The step function may write into them and replace them; the dtype stays. Their values are saved,
  // without the history that made them: hand on a detach(). Borrowed. "state/KEY"
  std::map<std::string, at::Tensor*> state;
  // Saves each parameter's gradient, for step functions that gather gradients over several steps: "gradients/NAME".
  bool gradients = false;
  // false: a restart goes on with the rates and other options that the program has made its optimizers with.
  bool restore_optimizer_options = true;
  // The step function, or the loop, sets the learning rates by the step's number: their changes are no sign of a
  // scheduler that was forgotten.
  bool rates_follow_step = false;
  // The step function updates parameters itself, or what its optimizer keeps is bound in another way
  // (ops::external_variable): no sign of an optimizer that was forgotten.
  bool updates_without_optimizer = false;
  // false: the steps are counted in a variable of their own. For a second training in a graph.
  bool counts_global_step = true;
};

struct TorchTraining {
  Operation train_op;    // runs the step function, then adds one to the global step
  Output loss;           // of the step made in the same run, which it makes if train_op is not fetched: a float scalar
  Variable global_step;  // or what counts the steps instead
  std::vector<Variable> model;  // the module's parameters and buffers
};

// InvalidArgumentError: a tensor that checkpoints have no dtype for; an optimizer of an unknown kind (known are SGD,
// Adam, AdamW, RMSprop and Adagrad), or with a parameter that is none of the module's. AlreadyExistsError: something in
// the scope has a name that is needed: give each training a scope of its own; a training of the graph counts the global
// step already; or a tensor of the module is bound in a graph that is still there. A parameter or buffer that is
// registered, replaced or removed afterwards is noticed when the model is initialised or saved:
// FailedPreconditionError.
TorchTraining torch_training(const Scope& scope, torch::nn::Module& module, torch::optim::Optimizer& optimizer,
                             TorchStepFunction step, const TorchTrainingOptions& options = {});
// With several optimizers, or with none.
TorchTraining torch_training(const Scope& scope, torch::nn::Module& module,
                             const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                             const TorchTrainingOptions& options = {});

// The parameters and buffers alone, without a training: for a program that evaluates a checkpoint.
//
//   const auto model = torch_variables(Scope(graph), *net);
//   Saver({.var_list = std::vector<SaveEntry>(model.begin(), model.end())}).restore(*session, prefix);
std::vector<Variable> torch_variables(const Scope& scope, torch::nn::Module& module);

}  // namespace longhaul
