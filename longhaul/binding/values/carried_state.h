#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <vector>

#include "longhaul/binding/values/bound_kept.h"
#include "longhaul/binding/watches/change_watch.h"

namespace longhaul {

// Tensors that a program carries from step to step, and may replace (TorchTrainingOptions::state), and its other values
// (TorchTrainingOptions::kept). Borrowed.
class CarriedState {
 public:
  BoundKept kept;

  void add(const std::string& name, at::Tensor* tensor);
  bool contains(const c10::TensorImpl* tensor) const;

  void begin();          // of a step
  bool changed() const;  // by the step under way
  // The name of one with autograd history, which no checkpoint has.
  std::optional<std::string> with_history() const;

 private:
  struct Look {
    c10::weak_intrusive_ptr<c10::TensorImpl> tensor;  // weak, so that it may be freed and no other is taken for it
    TensorLook look;
  };
  static Look look_at(const at::Tensor& tensor);

  std::vector<std::string> names_;
  std::vector<at::Tensor*> tensors_;
  std::vector<Look> before_;
};

}  // namespace longhaul
