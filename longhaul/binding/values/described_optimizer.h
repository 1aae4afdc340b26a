#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "longhaul/binding/optimizer_kind.h"
#include "longhaul/binding/values/torch_values.h"

namespace longhaul {

// How its class was registered, or LBFGS; nullptr: neither.
std::shared_ptr<const OptimizerDescription> find_description(const torch::optim::Optimizer& optimizer);

// As optimizer_values(), for a class that is described. InvalidArgumentError: its groups have options of another class
// than the description says. FailedPreconditionError by `read`: what it keeps for a parameter is of another class, or a
// tensor is of another dtype.
std::vector<TorchValue> described_values(const std::shared_ptr<const OptimizerDescription>& description,
                                         torch::optim::Optimizer& optimizer, const torch::nn::Module& module);

// As update_count().
std::optional<uint64_t> described_count(const OptimizerDescription& description, torch::optim::Optimizer& optimizer,
                                        const at::Tensor& parameter);

}  // namespace longhaul
