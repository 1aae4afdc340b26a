#include "longhaul/binding/bound_optimizers.h"

#include <fmt/format.h>

#include <utility>

#include "longhaul/base/error.h"

namespace longhaul {

BoundOptimizers::Bound& BoundOptimizers::add(const std::string& name, torch::optim::Optimizer& optimizer,
                                             const torch::nn::Module& module, const std::vector<TorchValue>& values) {
  for (const TorchValue& value : values) {
    // LBFGS's stays as restored, with the history of that size: libtorch writes past a list of a smaller one.
    if (value.name.ends_with("/history_size")) continue;
    if (value.name.starts_with("group_")) options_.push_back({value, value.read().clone()});
  }
  const OptimizerRecord made(optimizer, module);
  return optimizers_.emplace_back(Bound{
      .name = name, .optimizer = &optimizer, .group_sizes = group_sizes(optimizer), .made = made, .recorded = made});
}

void BoundOptimizers::check_groups() const {
  for (const Bound& bound : optimizers_) {
    if (has_groups(*bound.optimizer, bound.group_sizes)) continue;
    throw FailedPreconditionError(
        fmt::format("parameters were added to the optimizer ({}) after it was bound, and they would not be saved. Bind "
                    "the optimizer in its final form",
                    optimizer_kind(*bound.optimizer)));
  }
}

std::string BoundOptimizers::restored(Bound& bound, const OptimizerRecord& stored) {
  are_restored_ = true;
  if (stored.empty()) return "";
  const std::string changes = bound.made.changes_since(stored);
  bound.recorded = restores_options_ ? stored : bound.made;
  if (changes.empty() || !restores_options_) return "";
  return changes +
         ". The checkpoint's options are used, as schedulers have changed them. To use this program's options, set "
         "TorchTrainingOptions::restore_optimizer_options to false";
}

void BoundOptimizers::reinstate_options() {
  if (!std::exchange(are_restored_, false) || restores_options_) return;
  for (const Option& option : options_) option.value.assign(option.made);
}

}  // namespace longhaul
