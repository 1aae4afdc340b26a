#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

namespace longhaul::fake_device {

// Whether kernels of fake devices draw from their device's generator. Otherwise they draw from the CPU's.
void set_draws_from_own(bool own);

// What a CPU's kernel takes in place of the generator that the program gave. Undefined: it gave none, or kernels take
// the CPU's default one.
at::Generator generator_on_host(const at::Generator& given, c10::Device device);

// For kernels that take no generator: while it exists, the CPU's default one continues that of the device.
class DrawFromDevice {
 public:
  explicit DrawFromDevice(c10::Device device);
  ~DrawFromDevice();
  DrawFromDevice(const DrawFromDevice&) = delete;
  DrawFromDevice& operator=(const DrawFromDevice&) = delete;

 private:
  const at::Generator own_;  // undefined: kernels draw from the CPU's
  at::Tensor of_cpu_;
};

}  // namespace longhaul::fake_device
