#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_set>

namespace longhaul {

// The parameters and buffers of one binding. A tensor can be in only one binding of the process at a time: two would
// know neither each other's steps nor each other's failures. Any thread.
class BoundTensors {
 public:
  BoundTensors() = default;
  ~BoundTensors();  // releases them
  BoundTensors(const BoundTensors&) = delete;
  BoundTensors& operator=(const BoundTensors&) = delete;

  // The same tensor may be added again under another name. AlreadyExistsError: another binding has it.
  void add(const std::string& name, const at::Tensor& tensor);
  bool contains(const c10::TensorImpl* tensor) const { return own_.contains(tensor); }

  // Whether any binding of the process has it.
  static bool any_has(const at::Tensor& tensor);

 private:
  std::unordered_set<const c10::TensorImpl*> own_;
};

}  // namespace longhaul
