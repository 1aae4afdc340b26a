#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace longhaul {

// What tells whether a tensor was changed since. Version counters alone do not: SGD and batch norm write past them
// (through Tensor::data(), in libtorch 1.13). So a few elements are compared as well.
struct TensorLook {
  uint32_t version = 0;
  uint64_t elements = 0;           // a mixture of some
  const void* gradient = nullptr;  // its memory
  uint32_t gradient_version = 0;

  static TensorLook of(const at::Tensor& tensor);
  bool same_value(const TensorLook& other) const { return version == other.version && elements == other.elements; }
};

// Tells whether tensors may have been changed in a step, or between two steps, without a copy of them. What was changed
// counts as changed, unless it was changed past the counters and in few elements.
class ChangeWatch {
 public:
  void add(const at::Tensor& tensor);
  size_t size() const { return tensors_.size(); }
  const at::Tensor& tensor(size_t i) const { return tensors_[i]; }

  void begin();                             // of a step
  void end();                               // of a step that did not throw
  void assigned(const at::Tensor& tensor);  // its value is known; those of others, which share its memory, too
  void forget();                            // no value is known

  // Whether a step that is under way, or has failed, has changed anything. It also looks at the gradients: an update
  // needs new ones. Gradients that were only set to zero are none; what has new ones counts as changed, whether they
  // were used or not.
  bool changed() const;

  // The first tensor, by the order of add(), that was changed between the last step and this one, and after it was
  // assigned.
  std::optional<size_t> written_between() const { return written_between_; }

  // Of the last step: whether it changed tensor `i`, and whether it left a gradient of it.
  bool changed_in_step(size_t i) const { return !before_[i].same_value(after_[i]); }
  bool has_gradient(size_t i) const { return after_[i].gradient != nullptr; }

 private:
  static bool has_new_gradient(const at::Tensor& tensor, const TensorLook& before, const TensorLook& now);

  std::vector<at::Tensor> tensors_;
  std::vector<TensorLook> before_, after_;  // the begin and the end of a step
  std::vector<bool> known_;                 // after_ is as the last step, or an assignment, left the tensor
  std::optional<size_t> written_between_;
};

}  // namespace longhaul
