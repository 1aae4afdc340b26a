#include "longhaul/testing/fake_device/test_device_fixture.h"

#include <c10/core/DeviceType.h>

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul {
namespace {

c10::Device chosen_device() {
  fake_device::install();
  const char* name = std::getenv("LONGHAUL_TEST_DEVICE");
  if (name == nullptr) return c10::kCPU;
  if (std::string_view(name) == "fake") return fake_device::device();
  throw std::invalid_argument(std::string("LONGHAUL_TEST_DEVICE is ") + name + ", which is not \"fake\"");
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
