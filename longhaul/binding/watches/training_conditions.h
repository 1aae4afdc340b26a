#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/binding/torch_scheduler.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class LRScheduler;
class Optimizer;
}  // namespace torch::optim

namespace longhaul {

// Settings that a program may change during training but a checkpoint does not restore: which parameters require a
// gradient, which modules are in training mode, dropout rates, a scheduler's own parameters, LBFGS's line search.
// Checkpoints have a record of them after each of the last two steps, as text; a line for each:
//
//   LAST BEFORE NAME
//   0.25 0.5 dropout rate of 1
//
// The first step after a restore is compared with it. A setting that changes in each step, by its number, differs then,
// too: so a change at most twice as large as that between the two recorded steps is ignored.
class TrainingConditions {
 public:
  explicit TrainingConditions(const torch::nn::Module& module);  // borrowed
  void add_scheduler(const std::string& name, const torch::optim::LRScheduler& scheduler);
  void add_settings(const std::string& name, const std::vector<SchedulerSetting>& settings);
  void add_optimizer(const std::string& name, torch::optim::Optimizer& optimizer);

  void end_step();  // that did not throw
  // The differences found by the first step after a restore, returned once, in 20 lines at most; "": none.
  std::string take_changes() { return std::exchange(changes_, ""); }

  at::Tensor record() const;  // as bytes; none before the first step
  int64_t record_size() const;
  void restore(const at::Tensor& record);

 private:
  struct Condition {
    std::string name;
    bool is_switch;
    std::function<double()> read;
    std::optional<double> last = {}, before = {};  // after the last step, and after the one before it
  };

  void add(std::string name, bool is_switch, std::function<double()> read);
  void add_modules(const std::string& path, const torch::nn::Module& module);
  static bool has_jumped(const Condition& condition, double now);
  std::string text(bool of_now) const;

  std::vector<Condition> conditions_;
  std::vector<std::shared_ptr<const torch::nn::Module>> kept_;  // that conditions read from
  bool is_restored_ = false;                                    // and no step was made since
  std::string changes_;
};

}  // namespace longhaul
