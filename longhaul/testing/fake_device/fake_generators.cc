#include "longhaul/testing/fake_device/fake_generators.h"

#include <ATen/CPUGeneratorImpl.h>

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "longhaul/testing/fake_device/fake_device.h"

namespace longhaul::fake_device {
namespace {

std::atomic<bool> draws_from_own{false};

// Seen from outside, a generator of another device; its numbers are those of the CPU's kind.
class FakeGenerator final : public c10::GeneratorImpl {
 public:
  explicit FakeGenerator(c10::Device device, at::Generator numbers = at::make_generator<at::CPUGeneratorImpl>())
      : GeneratorImpl(device, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)), numbers_(std::move(numbers)) {}

  const at::Generator& numbers() const { return numbers_; }

  void set_current_seed(uint64_t seed) override { numbers_.set_current_seed(seed); }
  uint64_t current_seed() const override { return numbers_.current_seed(); }
  uint64_t seed() override { return numbers_.seed(); }
  void set_state(const c10::TensorImpl& state) override { impl().set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return impl().get_state(); }
  // libtorch 2 asks for these two.
  virtual void set_offset(uint64_t) { TORCH_CHECK(false, "a fake device's generator has no offset"); }
  virtual uint64_t get_offset() const { TORCH_CHECK(false, "a fake device's generator has no offset"); }

 private:
  FakeGenerator* clone_impl() const override { return new FakeGenerator(device_, numbers_.clone()); }
  c10::GeneratorImpl& impl() const { return *numbers_.unsafeGetGeneratorImpl(); }

  at::Generator numbers_;
};

const at::Generator& numbers_of(const at::Generator& generator) {
  return generator.get<FakeGenerator>()->numbers();
}

}  // namespace

void set_draws_from_own(bool own) {
  draws_from_own = own;
}

at::Generator default_generator(c10::Device device) {
  static std::mutex mutex;
  static auto* generators = new std::map<int, at::Generator>;
  const std::lock_guard<std::mutex> lock(mutex);
  at::Generator& generator = (*generators)[device.index()];
  if (!generator.defined()) generator = at::make_generator<FakeGenerator>(device);
  return generator;
}

at::Generator generator_on_host(const at::Generator& given, c10::Device device) {
  if (!given.defined()) return draws_from_own ? numbers_of(default_generator(device)) : given;
  return given.device().is_cpu() ? given : numbers_of(given);
}

DrawFromDevice::DrawFromDevice(c10::Device device) : own_(generator_on_host({}, device)) {
  if (!own_.defined()) return;
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  of_cpu_ = cpu.get_state();
  cpu.set_state(own_.get_state());
}

DrawFromDevice::~DrawFromDevice() {
  if (!own_.defined()) return;
  at::Generator cpu = at::detail::getDefaultCPUGenerator();
  own_.unsafeGetGeneratorImpl()->set_state(*cpu.get_state().unsafeGetTensorImpl());
  cpu.set_state(of_cpu_);
}

}  // namespace longhaul::fake_device
