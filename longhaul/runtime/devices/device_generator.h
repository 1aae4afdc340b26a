#pragma once

#include <ATen/core/Generator.h>
#include <c10/core/Device.h>

#include <functional>

namespace longhaul {

// Makes the default generators of a kind of device known that libtorch does not know itself: those of its own kinds
// (CUDA, MPS, XPU) need no registration. `find` returns the generator of one such device; null: no longer known. Any
// thread.
void register_default_generators(c10::DeviceType type, std::function<at::Generator(c10::Device)> find);

// Undefined: nobody knows it. Any thread.
at::Generator default_generator_of(c10::Device device);

}  // namespace longhaul
