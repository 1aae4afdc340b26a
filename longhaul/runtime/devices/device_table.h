#pragma once

#include <c10/core/Device.h>

#include <optional>
#include <string>
#include <vector>

#include "longhaul/graph/device_spec.h"
#include "longhaul/session/device_attributes.h"

namespace longhaul {

// Makes another kind of device than CUDA the one that sessions call GPU: for a libtorch with a backend of its own, and
// for tests without hardware. Sessions that are made later have it. Any thread.
void register_gpu_type(c10::DeviceType type);

// The devices of a task: TensorFlow's names for them, and where libtorch keeps their tensors. CPU:0 and so on are names
// for the one host. GPU:0 and so on are the devices of register_gpu_type()'s kind that this libtorch can use here.
// Immutable.
class DeviceTable {
 public:
  // `most_gpus`: takes no more of them.
  DeviceTable(const std::string& job, int task, int cpus, int most_gpus);

  const std::vector<DeviceAttributes>& attributes() const { return attributes_; }
  int gpus() const { return gpus_; }
  c10::Device gpu(int index) const { return {gpu_type_, static_cast<c10::DeviceIndex>(index)}; }
  bool has(const DeviceSpec& wanted) const { return position_of(wanted).has_value(); }
  // Of the first device that matches; nullopt: none does. All parts may be left out.
  std::optional<c10::Device> find(const DeviceSpec& wanted) const;
  // "/job:localhost/replica:0/task:0/device:GPU:1". Of the host it is that of the CPU that is asked for, if one is, or
  // else the first one's.
  const std::string& name_of(c10::Device device, const DeviceSpec& asked = {}) const;
  // "CPU:0, CPU:1, GPU:0"
  std::string short_names() const;

 private:
  std::optional<size_t> position_of(const DeviceSpec& wanted) const;

  const c10::DeviceType gpu_type_;
  const int cpus_, gpus_;
  std::vector<DeviceAttributes> attributes_;  // the CPUs, then the GPUs
  std::vector<DeviceSpec> specs_;             // of the same
};

}  // namespace longhaul
