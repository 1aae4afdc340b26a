#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace longhaul {

// A fingerprint that shows whether a tensor was changed since. Version counters are not enough: SGD and batch norm
// bypass them (through Tensor::data(), in libtorch 1.13). So a few elements are compared as well.
struct TensorLook {
  uint32_t version = 0;
  uint64_t elements = 0;           // a hash of some elements
  const void* gradient = nullptr;  // its memory
  uint32_t gradient_version = 0;

  static TensorLook of(const at::Tensor& tensor);
  bool same_value(const TensorLook& other) const { return version == other.version && elements == other.elements; }
};

// Tells whether tensors may have been changed in a step, or between two steps, without copying them. Every change is
// detected, unless it bypasses the counters and affects few elements.
class ChangeWatch {
 public:
  void add(const at::Tensor& tensor);
  size_t size() const { return tensors_.size(); }
  const at::Tensor& tensor(size_t i) const { return tensors_[i]; }

  void begin();                             // of a step
  void end();                               // of a step that did not throw
  void assigned(const at::Tensor& tensor);  // its value is known, and those of tensors that share its memory
  void forget();                            // no value is known

  // Whether a step that is under way, or has failed, has changed anything. It also checks gradients, since an update
  // needs new ones. Gradients that were only zeroed do not count as new; a tensor with new ones counts as changed,
  // whether they were used or not.
  bool changed() const;

  // The first tensor, in the order of add(), that was changed between the last step and this one, and since it was last
  // assigned.
  std::optional<size_t> written_between() const { return written_between_; }

  // For the last step: whether it changed tensor `i`, and whether it left a gradient for it.
  bool changed_in_step(size_t i) const { return !before_[i].same_value(after_[i]); }
  bool has_gradient(size_t i) const { return after_[i].gradient != nullptr; }

 private:
  static bool has_new_gradient(const at::Tensor& tensor, const TensorLook& before, const TensorLook& now);

  std::vector<at::Tensor> tensors_;
  std::vector<TensorLook> before_, after_;  // at the beginning and the end of a step
  std::vector<bool> known_;                 // after_ is the tensor's state after the last step or assignment
  std::optional<size_t> written_between_;
};

}  // namespace longhaul
