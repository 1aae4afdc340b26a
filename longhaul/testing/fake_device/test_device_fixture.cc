#include "longhaul/testing/fake_device/test_device_fixture.h"

#include <c10/core/DeviceType.h>

#include <cstdlib>
#include <string_view>

#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {
namespace {

c10::Device chosen_device() {
  fake_device::install();
  const char* name = std::getenv("LONGHAUL_TEST_DEVICE");
  return name != nullptr && std::string_view(name) == "fake" ? fake_device::device() : c10::Device(c10::kCPU);
}

// The fake devices are there before the first backward pass, which asks libtorch how many there are.
[[maybe_unused]] const c10::Device device_at_start = test_device();

}  // namespace

c10::Device test_device() {
  static const c10::Device device = chosen_device();
  return device;
}

void move_to_test_device(const torch::nn::Module& module) {
  if (!test_device().is_cpu()) fake_device::move(module, test_device());
}

}  // namespace longhaul
