#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <cstdint>
#include <exception>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "longhaul/binding/loop/torch_loop.h"
#include "longhaul/graph/graph.h"
#include "longhaul/train/divergence/divergence_options.h"
#include "longhaul/train/journal/save_interval.h"
#include "longhaul/train/onlookers/newest_weights.h"
#include "longhaul/train/signals/preemption.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/trainer/checked_run.h"
#include "longhaul/trainer/loop_ranges.h"

namespace longhaul {

class TrainerRun;

// libtorch's holders: torch::nn::Sequential, torch::nn::Linear, and whatever TORCH_MODULE() makes.
template <typename T>
concept ModuleHolder = requires(const T& holder) {
  holder.is_empty();
  { holder.ptr() } -> std::convertible_to<std::shared_ptr<torch::nn::Module>>;
};

// A module as programs have it: one of their classes, a holder, or a shared pointer. The module must outlive the
// objects created from it.
class ModuleArgument {
 public:
  ModuleArgument(torch::nn::Module& module) : module_(std::shared_ptr<torch::nn::Module>(), &module) {}
  template <ModuleHolder Holder>
  ModuleArgument(const Holder& holder) {
    if (!holder.is_empty()) module_ = holder.ptr();
  }
  template <std::convertible_to<std::shared_ptr<torch::nn::Module>> Pointer>
    requires(!ModuleHolder<Pointer>)
  ModuleArgument(const Pointer& pointer) : module_(pointer) {}

  // InvalidArgumentError: there is none, as in `torch::nn::Linear layer{nullptr}` before a layer is assigned. `name`
  // is for the message.
  torch::nn::Module& get(const std::string& name) const;
  const std::shared_ptr<torch::nn::Module>& pointer() const { return module_; }

 private:
  std::shared_ptr<torch::nn::Module> module_;  // non-owning if constructed from a reference
};

// When validations without improvement end the training run (Trainer::validate()).
struct EarlyStopping {
  int patience = 0;      // after this many in a row; 0: never
  double min_delta = 0;  // an improvement is better than the best so far by more than this
};

struct TrainerOptions {
  SaveInterval save_model_secs{kAuto};  // between checkpoints; kAuto: loses the least time; 0: none
  int64_t summary_steps = 100;          // between two summaries of a logged value; 0: none
  bool progress = true;                 // a line about the progress, on stdout
  BestOptions best{};                   // also keeps the checkpoints with the best metrics of Trainer::validate()
  EarlyStopping early_stopping{};       // by the same metrics, and BestOptions::mode
  // The way back if what is logged as "loss" is NaN, infinite or far too high: run() restores the last good checkpoint
  // and calls the body again, as a restart does. Reads the loss of each step. nullopt: such losses are only reported.
  std::optional<DivergenceOptions> divergence{};
  // Schedulers, generators, state tensors and other values of the program that checkpoints have.
  TorchTrainingOptions training{};
  // The program's own. nullptr: the Trainer makes one, as a process can have only one Preemption or StopSignals.
  Preemption* preemption = nullptr;
  // Changes what the Trainer is about to give its Supervisor: all that TrainerOptions do not name.
  std::function<void(SupervisorOptions&)> supervisor{};
};

// One of several modules, with its name in checkpoints, for programs that train more than one:
//
//   Trainer trainer("runs/gan", {{"generator", generator}, {"critic", critic}}, {&for_generator, &for_critic});
struct NamedModule {
  std::string name;
  ModuleArgument module;
};

// Trains a libtorch module under supervision: with the program's own loops, and everything else that a training run of
// days needs. It restores the newest intact checkpoint, saves while training continues, ends at a signal with a
// checkpoint, shows the progress, and writes what is logged for TensorBoard.
//
//   torch::nn::Sequential net(torch::nn::Linear(784, 10));
//   torch::optim::Adam adam(net->parameters(), 1e-3);
//   Trainer trainer("runs/net", net, adam);
//   return trainer.run([&] {
//     for (int64_t step : trainer.steps(10'000)) {
//       adam.zero_grad();
//       torch::Tensor loss = loss_of(net, batch(step));
//       loss.backward();
//       adam.step();
//       trainer.log("loss", loss);
//     }
//   });
//
// A program that is started again calls run() as the first time. Its loops then continue where the checkpoint was
// taken: steps() at its step, epochs() at its epoch, batches() after the batches that were taken. The code around the
// loops runs again, so it must prepare the same things: the same module, the same data. Whatever code inside the loops
// changes belongs to the next step that ends, and a checkpoint has either all of it or nothing: a scheduler that steps
// at the end of an epoch has stepped exactly once after any number of restarts. For this, snapshots are taken only at
// the ends of steps, on the thread that makes them.
//
// The following are restored bit for bit: the module, its optimizers, what TrainerOptions::training names, libtorch's
// default CPU generator, and the order of a torch::data loader that draws it from that generator when an epoch begins.
// The program's own variables are not kept: keep() those that steps depend on.
//
// One thread at a time may call, and the thread that calls run() makes the steps. Any thread may call request_stop().
// The modules, optimizers and what the options name must outlive it.
class Trainer {
 public:
  // `directory`: for checkpoints and summaries. Throws what torch_training() throws. In a run that `longhaul
  // resume-check` has started, it is in the check's directory instead, and kAuto is a second; the log says so.
  Trainer(std::string directory, const ModuleArgument& module, torch::optim::Optimizer& optimizer,
          TrainerOptions options = {});
  Trainer(std::string directory, const ModuleArgument& module, std::vector<torch::optim::Optimizer*> optimizers,
          TrainerOptions options = {});
  Trainer(std::string directory, const std::vector<NamedModule>& modules,
          std::vector<torch::optim::Optimizer*> optimizers, TrainerOptions options = {});
  ~Trainer();
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Restores or initialises the model, calls `body`, saves the last checkpoint. Returns the status with which the
  // program should exit: 0, the run has finished, or request_stop() or Ctrl-C has ended it before that; 75, a signal
  // stopped it, start it again (Preemption); 1, an error, which the log has, and error(). A stop ends the loops by an
  // exception that run() catches, so that the code after them runs only when they are complete.
  [[nodiscard]] int run(const std::function<void()>& body);
  // The same for a single loop: `step(number)` makes one step and returns its loss.
  template <std::invocable<int64_t> Step>
  [[nodiscard]] int run(int64_t steps, Step&& step) {
    static_assert(std::convertible_to<std::invoke_result_t<Step&, int64_t>, at::Tensor>,
                  "a step function returns at::Tensor: its loss");
    return run([&] {
      for (const int64_t number : this->steps(steps)) log("loss", step(number));
    });
  }
  // The error with which the last run() ended; null: it ended without one.
  std::exception_ptr error() const { return error_; }

  // The steps from the restored one to `last`: one iteration makes one. The run is `last` steps long in all, however
  // often it was started; none is left if `last` is 0 or negative. A `break` ends the loop for good; if the iteration
  // had changed the module, it counts. FailedPreconditionError, when the loop begins: outside run(), on another thread,
  // or inside another loop of the Trainer. This holds for epochs() as well.
  StepRange steps(int64_t last);

  // The epochs from the restored one to `last`, and inside each the batches of any loader with begin() and end(), or
  // the numbers from 0 to `count` - 1. One batch is one step. No epoch is left if `last` is 0 or negative.
  //
  //   for (int64_t epoch : trainer.epochs(10)) {
  //     for (auto& batch : trainer.batches(*loader)) train(batch);
  //     scheduler.step();
  //     trainer.validate([&] { return loss_on(test); });
  //   }
  //
  // A restart takes the batches of the current epoch again and leaves out the first ones, which takes as long as
  // loading them. `break` in the batches begins the next epoch; in the epochs it ends the loop for good. An epoch
  // without batches() that changes the module is one step, and a warning says so. FailedPreconditionError: batches()
  // outside an epoch, or inside the batches of another call.
  EpochRange epochs(int64_t last);
  template <typename Loader>
    requires(!std::integral<std::remove_cvref_t<Loader>>)
  auto batches(Loader&& loader) {
    if constexpr (HasBatches<Loader>) {
      return BatchRange<Loader>(loops(), std::forward<Loader>(loader));
    } else {
      static_assert(PointsToBatches<Loader>, "Trainer::batches() takes a loader with begin() and end(), or a number");
      static_assert(std::is_lvalue_reference_v<Loader> || std::is_pointer_v<Loader>,
                    "the loader would be gone before the first batch: keep the pointer to it in a variable");
      return batches(*loader);
    }
  }
  BatchRange<Count> batches(int64_t count);

  // Keeps values of the program in checkpoints, each in one line (KeptValues): counters, lists, standard generators,
  // tensors, and objects with keep_in(). Before run(); they are borrowed.
  //
  //   trainer.keep("episodes", episodes);
  //   trainer.keep("env", position, goal);
  //
  // AlreadyExistsError: the name is taken. FailedPreconditionError: there was a run already.
  template <typename... T>
  void keep(const std::string& name, T&... values) {
    KeptValues kept;
    kept.keep(name, values...);
    add(kept);
  }

  int64_t step() const;  // the number of steps made; 0 outside run()

  // Logs a scalar of the current step, step(), for TensorBoard and for the line of progress; "loss" is the step's loss.
  // Call it in run(), on its thread. The tensor has one element, in any shape. It is not copied, and that of a device
  // is read when a summary or a line of progress is due (that of "loss" in each step with TrainerOptions::divergence),
  // so do not change it in place. A value that is NaN or infinite is a warning, once in a run for each name; only
  // "loss" is what TrainerOptions::divergence watches. InvalidArgumentError: the tensor is undefined, or does not have
  // exactly one element.
  void log(std::string_view name, const at::Tensor& value);
  void log(std::string_view name, double value);

  // Evaluates without changing the training: `evaluate` runs without gradients, with the module in eval() mode, and
  // afterwards the mode, the default generator and those of TorchTrainingOptions::generators are as before. The result,
  // a metric such as a loss, is logged as `name`, decides which checkpoints are the best (TrainerOptions::best, whose
  // mode says whether lower is better) and when to stop early. Call it in run(), at the end of an epoch before anything
  // else is changed there, or in a step. What `evaluate` itself changes, such as a kept value, may be changed again by
  // a restart: a warning names it, and whatever `evaluate` writes to in the module, once in a run. Up to an hour does
  // not count as a hang (HangOptions); for longer evaluations, create a NoStepsExpected. Returns the metric; a NaN is
  // never an improvement. If `evaluate` throws, the mode and the generator are put back, nothing is logged or counted,
  // and the exception is passed on. A checkpoint that cannot be written is a warning.
  double validate(const std::function<double()>& evaluate, std::string_view name = "validation");
  // The best metric so far, and its step.
  double best_metric() const;  // NaN: none
  int64_t best_step() const;   // -1: none

  // Calls `action` between two steps, after each step whose number is a multiple of n, on the thread of run(). There it
  // may do what a step cannot: save, run the session. What it changes in the module is not repeated by a restart. Its
  // exceptions end the run. One that is added during run() is forgotten when the body ends: run() may call its body
  // again (TrainerOptions::divergence), which then adds it again. InvalidArgumentError: n < 1.
  void after_every(int64_t n, std::function<void()> action);

  // Publishes the weights during run() for other threads: those with which it begins, and new ones after every n-th
  // step, taken as a checkpoint is, while training continues (WeightsPublisher). Load them into a copy of the module:
  // load_state_dict(*copy, weights->tensors). `newest` is closed at the end of run(), and outlives the Trainer. Before
  // run(). InvalidArgumentError: n < 1. FailedPreconditionError: there was a run already.
  void publish_weights(NewestWeights& newest, int64_t every_n_steps = 1);

  // The run is complete: no loop makes another step, not even after a restart. The log says why.
  void finish(const std::string& reason);
  bool is_finished() const;
  const std::string& restored_from() const;  // "": the run has begun anew

  // Ends the run after the current step, with a checkpoint; before run(): before its first step.
  void request_stop();

  // Everything below: the graph, before run() (add variables and summaries); the rest, during it.
  Graph& graph() { return *graph_; }
  Scope scope() { return Scope(*graph_); }
  const TorchTraining& training() const { return loop_.training(); }
  Preemption& preemption() { return *preemption_; }
  Supervisor& supervisor();  // FailedPreconditionError: there was no run yet
  Session& session();        // FailedPreconditionError: not in run()

 private:
  Trainer(std::string directory, std::shared_ptr<torch::nn::Module> owned, torch::nn::Module& module,
          const std::vector<torch::optim::Optimizer*>& optimizers, TrainerOptions options);
  TrainingLoops& loops() const;
  void add(const KeptValues& kept);

  const std::optional<CheckedRun> checked_;  // nullopt: no check of restarts is under way
  const std::string directory_;
  const TrainerOptions options_;
  const std::shared_ptr<torch::nn::Module> owned_;    // the module; it may own nothing (ModuleArgument)
  const std::unique_ptr<Preemption> own_preemption_;  // null: the program's
  Preemption* const preemption_;
  const std::unique_ptr<Graph> graph_;
  TorchLoop loop_;
  const std::unique_ptr<TrainerRun> run_;
  std::exception_ptr error_;
};

}  // namespace longhaul
