#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/program_in_step.h"
#include "longhaul/base/step_of_thread.h"
#include "longhaul/binding/bound_optimizers.h"
#include "longhaul/binding/fetched_loss.h"
#include "longhaul/binding/loop/restored_values.h"
#include "longhaul/binding/overlap/overlapped_copies.h"
#include "longhaul/binding/torch_training.h"
#include "longhaul/binding/values/bound_tensors.h"
#include "longhaul/binding/values/carried_state.h"
#include "longhaul/binding/values/torch_values.h"
#include "longhaul/binding/watches/resume_watch.h"
#include "longhaul/binding/watches/training_conditions.h"
#include "longhaul/ops/external_variable.h"

namespace longhaul {

// The state of a bound program, and whose turn it is: the step function's, or that of a thread that reads or assigns a
// value. The graph's operations share it. One thread adds the values first; after that any thread may step, read and
// assign through the graph.
class BoundTorch : public std::enable_shared_from_this<BoundTorch> {
 public:
  explicit BoundTorch(const torch::nn::Module& module,
                      OverlappedCopies::Copier copier = OverlappedCopies::copy_during_training);

  // Adds a variable for each value.
  std::vector<Variable> add_variables(const Scope& scope, std::vector<TorchValue> values);
  // Adds a value that a checkpoint may lack.
  void add_optional(const Scope& scope, TorchValue value);

  void set_step(TorchStepFunction function, const TorchTrainingOptions& options);
  void set_loop(const TorchTrainingOptions& options);  // without a step function
  void add_optimizer(const Scope& scope, torch::optim::Optimizer& optimizer);
  void add_scheduler(const Scope& scope, int number, const TorchScheduler& scheduler);
  // A device's default one is optional: a checkpoint of a module on another kind of device lacks it.
  void add_generator(const Scope& scope, const std::string& name, const at::Generator& generator,
                     bool is_of_device = false);
  void add_state(const Scope& scope, const std::string& name, at::Tensor* tensor);
  void add_kept(const Scope& scope, const KeptValues& kept);
  void add_conditions(const Scope& scope);

  // The calls of a run: step(); ask(), if the run fetches the step and not only the loss; the loss, if it is fetched.
  void step(int64_t number, const std::vector<Tensor>& inputs);
  void ask();
  Tensor loss();

  // The step of a program that makes it in a loop of its own (TorchLoop), all on one thread: begin_in_loop(), the
  // program's code, then made_in_loop() and the run whose step() counts it, or leave_in_loop().
  void begin_in_loop(int64_t number);
  bool changed_in_loop() const;
  bool changed_anything_in_loop() const;  // and not only the module
  void made_in_loop(const at::Tensor& loss);
  void leave_in_loop(const std::string& reason);  // if it has changed anything, nothing is saved before a restore
  void cancel_in_loop();                          // there is no step

  // They read and assign values of this.
  RestoredValues restored();

  // The kept values that are short, and the states of all generators but the CPU's default one, as bytes by their
  // names: what the code before the batches of an epoch may read although steps change it.
  std::map<std::string, std::string> short_values();
  void set_short_values(const std::map<std::string, std::string>& bytes);

 private:
  using Turn = std::lock_guard<std::recursive_mutex>;  // recursive: a step function may read a variable

  struct Bound {
    TorchValue value;
    std::shared_ptr<GeneratorWatch> generator;  // for a generator's state
    bool inconsistent = false;                  // after a step that failed halfway
    bool is_own_generator = false;              // TorchTrainingOptions::generators, or a device's default one
  };

  // A step that the program makes in its own loop.
  struct InLoop {
    InLoop(BoundTorch& bound, int64_t number);
    // FailedPreconditionError: the run that counts a step, of this number, is not that of the step `made`; null: none.
    static void check_counted(const InLoop* made, int64_t number);

    const int64_t number;
    std::unique_lock<std::recursive_mutex> turn;
    std::optional<ProgramInStep> in_step;   // until it is made
    std::optional<StepOfThread> of_thread;  // the same
  };

  Bound& add(TorchValue value);
  ExternalValue access_to(Bound& bound);
  void add_record(const Scope& scope, BoundOptimizers::Bound& optimizer);
  Tensor read(Bound& bound);
  Tensor read_initial(Bound& bound);
  void assign(Bound& bound, const Tensor& value);
  void run_step(int64_t number, const std::vector<Tensor>& inputs);
  void begin_step(int64_t number);
  // It does not count. If it was made, or has changed anything, nothing is saved before a restore.
  void fail_step(std::string error, bool is_made = false);
  void end_step(const at::Tensor& loss);
  void say_findings();

  std::recursive_mutex turn_;
  const ModuleForm form_;
  std::deque<Bound> values_;
  BoundTensors tensors_;  // the module's parameters and buffers
  CarriedState state_;
  TrainingConditions conditions_;
  const std::shared_ptr<OverlappedCopies> copies_;
  ResumeWatch watch_{
      [this](const c10::TensorImpl* tensor) { return tensors_.contains(tensor) || state_.contains(tensor); }};
  BoundOptimizers optimizers_;
  std::optional<TorchStepFunction> function_;
  FetchedLoss loss_;
  std::atomic<bool> stepping_ = false;
  std::unique_ptr<InLoop> in_loop_;  // null: no step of a loop is under way
  struct Past {
    bool has_stepped = false;  // the module is no longer as the program made it
    std::string failed_step;   // the last step that failed halfway, and its error
  } past_;
};

// torch_training(), with what it binds to: of the same module, and new.
TorchTraining torch_training_of(const std::shared_ptr<BoundTorch>& bound, const Scope& scope, torch::nn::Module& module,
                                const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                                const TorchTrainingOptions& options);

}  // namespace longhaul
