#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <vector>

#include "longhaul/binding/change_watch.h"

namespace longhaul {

// Tensors that a program carries from step to step, and may replace by others (TorchTrainingOptions::state). Borrowed.
class CarriedState {
 public:
  void add(at::Tensor* tensor) { tensors_.push_back(tensor); }

  void begin() {  // of a step
    before_.clear();
    for (const at::Tensor* tensor : tensors_) before_.push_back(look_at(*tensor));
  }
  bool changed() const {  // by the step under way
    return !std::equal(tensors_.begin(), tensors_.end(), before_.begin(), before_.end(),
                       [](auto* tensor, auto& before) {
                         const Look now = look_at(*tensor);
                         return now.tensor.is_same(before.tensor) && now.look.same_value(before.look);
                       });
  }
  bool contains(const c10::TensorImpl* tensor) const {
    return std::any_of(tensors_.begin(), tensors_.end(),
                       [&](auto* carried) { return carried->unsafeGetTensorImpl() == tensor; });
  }

 private:
  struct Look {
    at::Tensor tensor;
    TensorLook look;
  };
  static Look look_at(const at::Tensor& tensor) {
    return {tensor, tensor.defined() ? TensorLook::of(tensor) : TensorLook()};
  }

  std::vector<at::Tensor*> tensors_;
  std::vector<Look> before_;
};

}  // namespace longhaul
