#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/binding/bound_optimizers.h"
#include "longhaul/binding/fetched_loss.h"
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
  void add_optimizer(const Scope& scope, torch::optim::Optimizer& optimizer);
  void add_scheduler(const Scope& scope, const std::string& name, torch::optim::LRScheduler& scheduler);
  void add_generator(const Scope& scope, const std::string& name, const at::Generator& generator);
  void add_state(const Scope& scope, const std::string& name, at::Tensor* tensor);
  void add_conditions(const Scope& scope);

  // The calls of a run: step(); ask(), if the run fetches the step and not only the loss; the loss, if it is fetched.
  void step(int64_t number, const std::vector<Tensor>& inputs);
  void ask();
  Tensor loss();

 private:
  using Turn = std::lock_guard<std::recursive_mutex>;  // recursive: a step function may read a variable

  struct Bound {
    TorchValue value;
    std::shared_ptr<GeneratorWatch> generator;  // for a generator's state
    bool inconsistent = false;                  // after a step that failed halfway
  };

  Bound& add(TorchValue value);
  ExternalValue access_to(Bound& bound);
  void add_record(const Scope& scope, BoundOptimizers::Bound& optimizer);
  Tensor read(Bound& bound);
  Tensor read_initial(Bound& bound);
  void assign(Bound& bound, const Tensor& value);
  void check_callable() const;
  void run_step(int64_t number, const std::vector<Tensor>& inputs);
  void mark_inconsistent(std::string by);
  void take_findings_of_step(const at::Tensor& loss);
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
  std::string failed_step_;   // the last step that failed halfway, and its error
  bool has_stepped_ = false;  // the module is no longer as the program made it
};

// torch_training(), with what it binds to: of the same module, and new.
TorchTraining torch_training_of(const std::shared_ptr<BoundTorch>& bound, const Scope& scope, torch::nn::Module& module,
                                const std::vector<torch::optim::Optimizer*>& optimizers, TorchStepFunction step,
                                const TorchTrainingOptions& options);

}  // namespace longhaul
