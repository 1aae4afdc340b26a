#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "longhaul/binding/change_watch.h"

namespace longhaul {

// Tensors that a program carries from step to step, and may replace by others (TorchTrainingOptions::state). Borrowed.
class CarriedState {
 public:
  void add(at::Tensor* tensor) { tensors_.push_back(tensor); }
  bool contains(const c10::TensorImpl* tensor) const;

  void begin();          // of a step
  bool changed() const;  // by the step under way

 private:
  struct Look {
    at::Tensor tensor;
    TensorLook look;
  };
  static Look look_at(const at::Tensor& tensor);

  std::vector<at::Tensor*> tensors_;
  std::vector<Look> before_;
};

}  // namespace longhaul
