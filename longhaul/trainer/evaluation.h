#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/binding/torch_training.h"

namespace longhaul {

// What Trainer::validate() runs its function in: the module in eval() mode, without gradients, and without effect on
// the mode and the random numbers of libtorch's generators. What the function changes beyond that is told, each once in
// a run. One thread.
class Evaluation {
 public:
  // Both are borrowed.
  Evaluation(torch::nn::Module& module, const TorchTrainingOptions& options) : module_(module), options_(options) {
    add(options.kept);
  }
  void add(const KeptValues& kept);  // that checkpoints have as well
  void begin_run() { has_told_of_module_ = has_told_of_values_ = false; }

  // `between_steps`: a checkpoint may be saved meanwhile, and a restart evaluates again.
  double run(const std::function<double()>& evaluate, bool between_steps);

 private:
  // A look at each value, by its name; it differs if the value has changed, as far as a sample shows.
  using Looks = std::vector<std::pair<std::string, uint64_t>>;
  static Looks named(const std::vector<std::string>& names, const std::vector<at::Tensor>& tensors);
  Looks look_at_module() const;
  Looks look_at_values() const;  // the program's own
  void tell(const Looks& module_before, const Looks& values_before, bool between_steps);

  torch::nn::Module& module_;
  const TorchTrainingOptions& options_;
  std::vector<KeptValue> kept_;
  bool has_told_of_module_ = false, has_told_of_values_ = false;
};

}  // namespace longhaul
