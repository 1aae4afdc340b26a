#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <unordered_set>

#include "longhaul/binding/devices/device_streams.h"

namespace longhaul {

// The parameters and buffers of one binding, and the streams of their devices. A tensor can be in only one binding of
// the process at a time: two would know neither each other's steps nor each other's failures. Any thread, but for
// add() and streams().
class BoundTensors {
 public:
  BoundTensors() = default;
  ~BoundTensors();  // releases them
  BoundTensors(const BoundTensors&) = delete;
  BoundTensors& operator=(const BoundTensors&) = delete;

  // The same tensor may be added again under another name. AlreadyExistsError: another binding has it.
  void add(const std::string& name, const at::Tensor& tensor);
  bool contains(const c10::TensorImpl* tensor) const { return own_.contains(tensor); }

  DeviceStreams& streams() { return streams_; }

  // Whether any binding of the process has it.
  static bool any_has(const at::Tensor& tensor);

 private:
  std::unordered_set<const c10::TensorImpl*> own_;
  DeviceStreams streams_;
};

}  // namespace longhaul
