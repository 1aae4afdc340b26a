#include "longhaul/binding/watches/optimizer_watch.h"

#include <torch/optim/optimizer.h>

#include <algorithm>
#include <utility>

#include "longhaul/binding/values/torch_values.h"

namespace longhaul {
namespace {

bool has(const torch::optim::Optimizer& optimizer, const at::Tensor& parameter) {
  const auto& groups = optimizer.param_groups();
  return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
    return std::any_of(group.params().begin(), group.params().end(),
                       [&](const at::Tensor& tensor) { return tensor.is_same(parameter); });
  });
}

}  // namespace

void OptimizerWatch::add(const std::string& name, torch::optim::Optimizer& optimizer) {
  optimizers_.push_back({name, &optimizer, {}});
}

// One of two that have the same parameter may rest.
bool OptimizerWatch::others_have(const at::Tensor& parameter, const Bound& bound) const {
  return std::any_of(optimizers_.begin(), optimizers_.end(), [&](const Bound& other) {
    return other.optimizer != bound.optimizer && has(*other.optimizer, parameter);
  });
}

std::optional<at::Tensor> OptimizerWatch::find_trained(const Bound& bound, const Trained& trained) const {
  for (const auto& group : bound.optimizer->param_groups()) {
    for (const at::Tensor& parameter : group.params()) {
      if (trained(parameter)) return others_have(parameter, bound) ? std::nullopt : std::optional(parameter);
    }
  }
  return std::nullopt;
}

std::optional<OptimizerWatch::Finding> OptimizerWatch::look(const Trained& trained) {
  for (Bound& bound : optimizers_) {
    const std::optional<at::Tensor> parameter = find_trained(bound, trained);
    const std::optional<uint64_t> count = parameter ? update_count(*bound.optimizer, *parameter) : std::nullopt;
    if (!count) continue;
    const auto [known, is_new] = bound.counts.try_emplace(parameter->unsafeGetTensorImpl(), *count);
    const bool is_idle = is_new ? *count == 0 : known->second == *count;
    known->second = *count;
    bound.idle = is_idle ? bound.idle + 1 : 0;
    if (bound.idle >= kSteps) return Finding{bound.name, *parameter};
  }
  return std::nullopt;
}

}  // namespace longhaul
