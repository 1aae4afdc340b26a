#pragma once

#include <ATen/core/Tensor.h>
#include <torch/optim/optimizer.h>

#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

namespace longhaul {

using OptimizerStateKey = std::decay_t<decltype(std::declval<torch::optim::Optimizer&>().state())>::key_type;

// The key of what an optimizer keeps for a parameter: its address, in libtorch 1.13 as text.
template <typename Key = OptimizerStateKey>
Key optimizer_state_key(const at::Tensor& parameter) {
  c10::TensorImpl* const address = parameter.unsafeGetTensorImpl();
  if constexpr (std::is_same_v<Key, std::string>) {
    return c10::str(address);
  } else {
    return address;
  }
}

// What an optimizer (borrowed) keeps for one parameter, by the key that libtorch has for it.
template <typename State>
class StateOf {
 public:
  using Make = std::function<std::unique_ptr<torch::optim::OptimizerParamState>()>;

  StateOf(
      torch::optim::Optimizer& optimizer, at::Tensor parameter, Make make = [] { return std::make_unique<State>(); })
      : optimizer_(&optimizer),
        parameter_(std::move(parameter)),
        key_(optimizer_state_key(parameter_)),
        make_(std::move(make)) {}

  const at::Tensor& parameter() const { return parameter_; }
  State* find() const {
    const auto it = optimizer_->state().find(key_);
    return it == optimizer_->state().end() ? nullptr : static_cast<State*>(it->second.get());
  }
  State& find_or_make() const {
    auto& state = optimizer_->state()[key_];
    if (!state) state = make_();
    return static_cast<State&>(*state);
  }
  void erase() const { optimizer_->state().erase(key_); }

 private:
  torch::optim::Optimizer* optimizer_;
  at::Tensor parameter_;
  OptimizerStateKey key_;
  Make make_;
};

}  // namespace longhaul
