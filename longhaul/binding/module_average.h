#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "longhaul/binding/kept_values.h"

namespace torch::nn {
class Module;
}

namespace longhaul {

struct ModuleAverageOptions {
  // For an exponential average: how much of the average an update keeps, in [0, 1]. nullopt: all updates count alike,
  // as in stochastic weight averaging.
  std::optional<double> decay{};
  // Buffers, such as the statistics of batch norm, are averaged as well. false: they are those of the last update.
  bool averages_buffers = false;
};

// A running average of a module's parameters (EMA, SWA), with the rules of PyTorch's
// torch.optim.swa_utils.AveragedModel: the first update takes the parameters as they are; each further one moves the
// average towards them, by 1 - decay or by 1 / (updates + 1). Values that are not floating-point are taken as they are.
//
//   lh::ModuleAverage average(*net, {.decay = 0.999});
//   TorchTrainingOptions options;
//   options.kept.keep("average", average);              // kept/average/0.weight, ..., kept/average/updates
//   const auto training = torch_training(scope, *net, adam, [&](const TorchStep& step) {
//     adam.zero_grad();
//     const torch::Tensor loss = loss_of(net, batch(step.number));
//     loss.backward();
//     adam.step();
//     average.update();                                 // in the step function
//     return loss;
//   }, options);
//   ...
//   {
//     const lh::AveragedWeights weights(average);       // net has the averaged weights
//     net->eval();
//     evaluate(net);
//   }                                                   // and the trained ones again, also after an exception
//
// Parameters that the module has under several names are averaged once. The average has memory of its own, as much as
// the module has. It borrows nothing from the module but its tensors, which must not be replaced. Not synchronised: one
// thread trains and evaluates.
class ModuleAverage {
 public:
  // InvalidArgumentError: the decay is not in [0, 1]; the module has no parameters.
  explicit ModuleAverage(const torch::nn::Module& module, const ModuleAverageOptions& options = {});
  ModuleAverage(const ModuleAverage&) = delete;
  ModuleAverage& operator=(const ModuleAverage&) = delete;

  // Call it after the optimizer's step. FailedPreconditionError: the averaged weights are in the module.
  void update();
  int64_t updates() const { return updates_; }

  // "0.weight" and its average.
  const std::vector<std::pair<std::string, at::Tensor>>& values() const { return averages_; }

  // For KeptValues::keep().
  void keep_in(KeptValues& kept, const std::string& name);

 private:
  friend class AveragedWeights;
  struct Source {
    at::Tensor tensor;
    bool is_averaged;
  };

  const ModuleAverageOptions options_;
  std::vector<Source> sources_;                               // of the module
  std::vector<std::pair<std::string, at::Tensor>> averages_;  // of the sources
  int64_t updates_ = 0;
  bool is_swapped_in_ = false;
};

// While it exists, the module's tensors have the memory of the average, so nothing is copied. Checkpoints have the
// trained weights meanwhile. Destroy it before the next step, which is refused otherwise (FailedPreconditionError).
// Changes to the module's tensors during this time change the average.
class [[nodiscard]] AveragedWeights {
 public:
  // FailedPreconditionError: there was no update yet, or the averaged weights are in the module already.
  explicit AveragedWeights(ModuleAverage& average);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  ModuleAverage& average_;
};

}  // namespace longhaul
