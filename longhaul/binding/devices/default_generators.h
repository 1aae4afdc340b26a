#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace longhaul {

// Makes the default generators of a kind of device known that libtorch does not know itself: those of its own kinds
// (CUDA, MPS, XPU) need no registration. `find` returns the generator of one such device; null: no longer known. Any
// thread.
void register_default_generators(c10::DeviceType type, std::function<at::Generator(c10::Device)> find);

// The default generators of the devices, other than the CPU, that these tensors are on, by their names in checkpoints:
// "cuda_0" is that of the first of the CUDA devices, whatever its index, so that a restart may use another one. For a
// device whose default generator is unknown, the log says that checkpoints do not have it, unless one of `bound` is of
// that kind of device. A generator that `bound` has is left out.
std::map<std::string, at::Generator> default_generators_of(const std::vector<at::Tensor>& tensors,
                                                           const std::map<std::string, at::Generator>& bound);

// That of the CPU, and all that default_generators_of() has found in this process.
std::vector<at::Generator> default_generators_in_use();

}  // namespace longhaul
