#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/binding/watches/change_watch.h"
#include "longhaul/binding/watches/gradient_place.h"

namespace longhaul {

// Finds tensors that are trained but not bound: they receive gradients from the loss's backward, persist from step to
// step, and change. It checks few steps, at growing distances. It finds nothing if a step function returns a loss
// without its graph (detach(), item()).
class LeafWatch {
 public:
  using IsBound = std::function<bool(const c10::TensorImpl*)>;
  explicit LeafWatch(IsBound is_bound) : is_bound_(std::move(is_bound)) {}

  // Call after a step. Returns the sizes of such a tensor.
  std::optional<std::vector<int64_t>> look_at(const at::Tensor& loss);

 private:
  struct Leaf {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // so that no other one is taken for it
    TensorLook look;
    std::optional<GradientPlace> place;
  };

  std::optional<std::vector<int64_t>> changed_one(const std::vector<Leaf>& leaves) const;

  const IsBound is_bound_;
  std::vector<Leaf> leaves_;
  int64_t steps_ = 0;
};

}  // namespace longhaul
