#include "longhaul/binding/module_average.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/nn/module.h>

#include <unordered_set>

#include "longhaul/base/error.h"
#include "longhaul/binding/values/lent_tensors.h"
#include "longhaul/runtime/aten/aten_tensor.h"

namespace longhaul {

ModuleAverage::ModuleAverage(const torch::nn::Module& module, const ModuleAverageOptions& options) : options_(options) {
  if (options.decay && !(*options.decay >= 0 && *options.decay <= 1)) {
    throw InvalidArgumentError(
        fmt::format("ModuleAverageOptions::decay is {}; it must be in [0, 1], such as 0.999", *options.decay));
  }
  std::unordered_set<const c10::TensorImpl*> seen;
  const auto add = [&](const std::string& name, const at::Tensor& tensor, bool is_averaged) {
    if (!tensor.defined() || !seen.insert(tensor.unsafeGetTensorImpl()).second) return;
    sources_.push_back({tensor, is_averaged && tensor.is_floating_point()});
    averages_.emplace_back(name, tensor.detach().clone());
  };
  for (const auto& parameter : module.named_parameters()) add(parameter.key(), parameter.value(), true);
  if (sources_.empty()) throw InvalidArgumentError("a module without parameters has no average");
  for (const auto& buffer : module.named_buffers()) add(buffer.key(), buffer.value(), options.averages_buffers);
}

// torch/optim/swa_utils.py of PyTorch 2: AveragedModel.update_parameters with get_ema_multi_avg_fn and
// get_swa_multi_avg_fn: average.lerp_(value, 1 - decay), and average.lerp_(value, 1 / (updates + 1)).
void ModuleAverage::update() {
  if (is_swapped_in_) {
    throw FailedPreconditionError(
        "a ModuleAverage cannot be updated while its AveragedWeights are in the module: the average would be averaged "
        "with itself. End them before the next step");
  }
  const at::NoGradGuard no_grad;
  const double weight = options_.decay ? 1 - *options_.decay : 1 / static_cast<double>(updates_ + 1);
  for (size_t i = 0; i < sources_.size(); ++i) {
    at::Tensor& average = averages_[i].second;
    if (updates_ == 0 || !sources_[i].is_averaged) {
      average.copy_(sources_[i].tensor);
    } else {
      average.lerp_(sources_[i].tensor.detach(), weight);
    }
  }
  ++updates_;
}

void ModuleAverage::keep_in(KeptValues& kept, const std::string& name) {
  kept.keep(name + "/updates", updates_);
  for (auto& [parameter, average] : averages_) {
    KeptValue value = kept::value_of(name + "/" + parameter, average);
    // In place: the tensor stays the one that AveragedWeights lends.
    value.check = [name = value.name, &average = average](const Tensor& saved) {
      if (saved.shape() == shape_of(average)) return;
      throw InvalidArgumentError(
          fmt::format("kept/{} is {} in this program and {} in the checkpoint: the average is "
                      "of another module",
                      name, shape_of(average).to_string(), saved.shape().to_string()));
    };
    value.assign = [&average = average](const Tensor& saved) { average.copy_(to_aten(saved)); };
    kept.add(std::move(value));
  }
}

AveragedWeights::AveragedWeights(ModuleAverage& average) : average_(average) {
  if (average.updates_ == 0) {
    throw FailedPreconditionError(
        "there is no average yet: call ModuleAverage::update() in a step before AveragedWeights");
  }
  if (average.is_swapped_in_) {
    throw FailedPreconditionError("the averaged weights are in the module already: two AveragedWeights of one average");
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs;
  for (size_t i = 0; i < average.sources_.size(); ++i) {
    if (is_lent(average.sources_[i].tensor)) {
      throw FailedPreconditionError(fmt::format(
          "{} has the weights of another average: end those AveragedWeights first", average.averages_[i].first));
    }
    pairs.emplace_back(average.sources_[i].tensor, average.averages_[i].second);
  }
  lend_memory(pairs);
  average.is_swapped_in_ = true;
}

AveragedWeights::~AveragedWeights() {
  std::vector<at::Tensor> tensors;
  for (const ModuleAverage::Source& source : average_.sources_) tensors.push_back(source.tensor);
  give_back_memory(tensors);
  average_.is_swapped_in_ = false;
}

}  // namespace longhaul
