#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_set>

namespace longhaul {

// The parameters and buffers of one binding. Each can be in one binding of the process at a time: two would not know of
// each other's steps, nor that one of them failed. Any thread.
class BoundTensors {
 public:
  BoundTensors() = default;
  ~BoundTensors();  // frees them
  BoundTensors(const BoundTensors&) = delete;
  BoundTensors& operator=(const BoundTensors&) = delete;

  // The same tensor may come again under another name. AlreadyExistsError: another binding has it.
  void add(const std::string& name, const at::Tensor& tensor);
  bool contains(const c10::TensorImpl* tensor) const { return own_.contains(tensor); }

 private:
  std::unordered_set<const c10::TensorImpl*> own_;
};

}  // namespace longhaul
