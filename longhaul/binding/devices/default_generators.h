#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <map>
#include <string>
#include <vector>

namespace longhaul {

// The default generators of the devices, other than the CPU, that these tensors are on, by their names in checkpoints:
// "cuda_0" is that of the first of the CUDA devices, whatever its index, so that a restart may use another one. For a
// device whose default generator is unknown, the log says that checkpoints do not have it, unless one of `bound` is of
// that kind of device. A generator that `bound` has is left out.
std::map<std::string, at::Generator> default_generators_of(const std::vector<at::Tensor>& tensors,
                                                           const std::map<std::string, at::Generator>& bound);

// That of the CPU, and all that default_generators_of() has found in this process.
std::vector<at::Generator> default_generators_in_use();

}  // namespace longhaul
