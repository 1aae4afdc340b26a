#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/binding/bound_tensors.h"
#include "longhaul/binding/carried_state.h"
#include "longhaul/binding/optimizer_record.h"
#include "longhaul/binding/resume_watch.h"
#include "longhaul/binding/torch_training.h"
#include "longhaul/binding/torch_values.h"
#include "longhaul/binding/training_conditions.h"
#include "longhaul/ops/external_variable.h"

namespace longhaul {

// What was bound, and whose turn it is: the step function's, or that of a thread that reads or assigns a value. The
// operations of the graph share it. First what is bound is added, by one thread; then any thread may step, read and
// assign through the graph.
class BoundTorch : public std::enable_shared_from_this<BoundTorch> {
 public:
  explicit BoundTorch(const torch::nn::Module& module);

  // A variable for each value.
  std::vector<Variable> add_variables(const Scope& scope, std::vector<TorchValue> values);
  // What a checkpoint may lack.
  void add_optional(const Scope& scope, TorchValue value);

  void set_step(TorchStepFunction function, const TorchTrainingOptions& options);
  void add_optimizer(const Scope& scope, torch::optim::Optimizer& optimizer);
  void add_scheduler(const Scope& scope, const std::string& name, torch::optim::LRScheduler& scheduler);
  void add_generator(const Scope& scope, const std::string& name, const at::Generator& generator);
  void add_state(const Scope& scope, const std::string& name, at::Tensor* tensor);
  void add_conditions(const Scope& scope);

  // In a run: the step; ask(), if the run was asked for it and not for the loss alone; the loss, if it was asked for.
  void step(int64_t number, const std::vector<Tensor>& inputs);
  void ask();
  Tensor loss();

 private:
  using Turn = std::lock_guard<std::recursive_mutex>;  // recursive: a step function may read a variable

  struct Bound {
    TorchValue value;
    std::shared_ptr<GeneratorWatch> generator;  // of a generator's state
    bool inconsistent = false;                  // by a step that failed halfway
  };
  struct BoundOptimizer {
    std::string name;
    const torch::optim::Optimizer* optimizer;
    std::vector<size_t> group_sizes;
    OptimizerRecord made;      // by the program
    OptimizerRecord recorded;  // in checkpoints: what its options in effect come from
  };
  struct ProgramOption {
    TorchValue value;
    at::Tensor made;  // by the program
  };

  Bound& add(TorchValue value);
  ExternalValue access_to(Bound& bound);
  void add_record(const Scope& scope, BoundOptimizer& optimizer);
  std::string take_record(BoundOptimizer& optimizer, const OptimizerRecord& stored);
  Tensor read(Bound& bound);
  Tensor read_initial(Bound& bound);
  void assign(Bound& bound, const Tensor& value);
  void check_callable() const;
  void run_step(int64_t number, const std::vector<Tensor>& inputs);
  void take_program_options();
  void mark_inconsistent(std::string by);
  void take_findings_of_step(const at::Tensor& loss);
  void say_findings();

  std::recursive_mutex turn_;
  const torch::nn::Module* const module_;
  const std::shared_ptr<const torch::nn::Module> owner_;  // of the module; nothing, if no shared pointer owns it
  const ModuleForm form_;
  std::deque<Bound> values_;
  BoundTensors tensors_;  // the module's parameters and buffers
  CarriedState state_;
  TrainingConditions conditions_;
  ResumeWatch watch_{
      [this](const c10::TensorImpl* tensor) { return tensors_.contains(tensor) || state_.contains(tensor); }};
  std::deque<BoundOptimizer> optimizers_;
  std::vector<ProgramOption> program_options_;
  std::optional<TorchStepFunction> function_;
  at::Tensor loss_;
  bool is_asked_ = false;                           // the step of the run under way
  bool was_asked_ = false, was_not_asked_ = false;  // some step
  bool restores_options_ = true;
  bool options_are_restored_ = false;  // and the program's are to be put back
  bool stepping_ = false;
  std::string failed_step_;   // which step failed halfway last, and with what
  bool has_stepped_ = false;  // the module is no longer as the program made it
};

}  // namespace longhaul
