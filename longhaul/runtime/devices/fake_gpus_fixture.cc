#include "longhaul/runtime/devices/fake_gpus_fixture.h"

#include <ATen/CPUGeneratorImpl.h>

#include "longhaul/runtime/devices/device_generator.h"
#include "longhaul/runtime/devices/device_table.h"
#include "longhaul/runtime/devices/pinned_memory.h"
#include "longhaul/testing/fake_device/fake_device.h"
#include "longhaul/testing/fake_device/test_device_fixture.h"

namespace longhaul {
namespace {

[[maybe_unused]] const bool all_tests_have_them = [] {
  if (test_device().is_cpu()) return false;
  static const FakeGpus to_the_end;
  return true;
}();

}  // namespace

FakeGpus::FakeGpus() {
  const c10::DeviceType type = fake_device::device().type();
  register_default_generators(type, [](c10::Device) { return at::detail::createCPUGenerator(); });
  register_pinned_memory(type, &fake_device::pinned_memory);
  register_gpu_type(type);
}

FakeGpus::~FakeGpus() {
  if (!test_device().is_cpu()) return;
  register_gpu_type(c10::kCUDA);
  register_default_generators(fake_device::device().type(), nullptr);
  register_pinned_memory(fake_device::device().type(), nullptr);
}

}  // namespace longhaul
