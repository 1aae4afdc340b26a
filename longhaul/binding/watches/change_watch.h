#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace longhaul {

// A fingerprint that shows whether a tensor was changed since. Version counters are not enough: SGD and batch norm
// bypass them (through Tensor::data(), in libtorch 1.13). So elements are compared as well: a few of them on the CPU,
// the sum of all on other devices.
struct TensorLook {
  uint32_t version = 0;
  uint64_t elements = 0;           // a hash
  bool has_elements = false;       // they were looked at
  const void* gradient = nullptr;  // its memory
  uint32_t gradient_version = 0;

  // Without the elements of tensors on other devices than the CPU, which one would have to wait for.
  static TensorLook of(const at::Tensor& tensor);
  bool same_value(const TensorLook& other) const {
    return version == other.version && (!has_elements || !other.has_elements || elements == other.elements);
  }
};

// With the elements of all tensors: it waits once for each device.
std::vector<TensorLook> looks_at_all(const std::vector<at::Tensor>& tensors);

// Tells whether tensors may have been changed in a step, or between two steps, without copying them. Every change is
// detected, unless it bypasses the counters and affects few elements.
class ChangeWatch {
 public:
  void add(const at::Tensor& tensor);
  size_t size() const { return tensors_.size(); }
  const at::Tensor& tensor(size_t i) const { return tensors_[i]; }

  // A step begins. With `looks_at_devices` all elements on other devices than the CPU are compared, too, before and
  // after it, and at the begin of the next step: each time it waits once for each device.
  void begin(bool looks_at_devices);
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

  // Whether a tensor on another device than the CPU differs from what it was when devices were first looked at. It
  // waits for the devices.
  bool changed_on_devices() const;

 private:
  static bool has_new_gradient(const at::Tensor& tensor, const TensorLook& before, const TensorLook& now);

  std::vector<at::Tensor> tensors_;
  std::vector<TensorLook> before_, after_;  // at the beginning and the end of a step
  std::vector<TensorLook> first_;           // has_elements: when devices were first looked at
  std::vector<bool> known_;                 // after_ is the tensor's state after the last step or assignment
  bool looks_at_devices_ = false;           // in the last step
  std::optional<size_t> written_between_;
};

}  // namespace longhaul
