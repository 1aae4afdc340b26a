#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "longhaul/binding/change_watch.h"
#include "longhaul/binding/gradient_place.h"

namespace longhaul {

// Finds what is trained and is not bound: tensors that the loss's backward gives gradients to, that are there from step
// to step, and that change. It looks at few steps, which are more and more apart. It sees nothing where a step function
// returns a loss without what made it (detach(), item()).
class LeafWatch {
 public:
  using IsBound = std::function<bool(const c10::TensorImpl*)>;
  explicit LeafWatch(IsBound is_bound) : is_bound_(std::move(is_bound)) {}

  // After a step. The sizes of such a tensor.
  std::optional<std::vector<int64_t>> look_at(const at::Tensor& loss);

 private:
  struct Leaf {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // so no other one is taken for it
    TensorLook look;
    std::optional<GradientPlace> place;
  };

  std::optional<std::vector<int64_t>> changed_one(const std::vector<Leaf>& leaves) const;

  const IsBound is_bound_;
  std::vector<Leaf> leaves_;
  int64_t steps_ = 0;
};

}  // namespace longhaul
