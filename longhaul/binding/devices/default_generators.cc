#include "longhaul/binding/devices/default_generators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <c10/core/DeviceType.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "longhaul/base/log.h"
#include "longhaul/runtime/devices/device_generator.h"

namespace longhaul {
namespace {

// Graphs may go at the very end of the program, so this stays.
struct InUse {
  std::mutex mutex;
  std::vector<at::Generator> generators;  // guarded by the mutex

  static InUse& get() {
    static auto* in_use = new InUse;
    return *in_use;
  }
};

at::Generator generator_to_use(c10::Device device) {
  at::Generator generator = default_generator_of(device);
  if (!generator.defined()) return generator;
  InUse& in_use = InUse::get();
  const std::lock_guard<std::mutex> lock(in_use.mutex);
  if (std::find(in_use.generators.begin(), in_use.generators.end(), generator) == in_use.generators.end())
    in_use.generators.push_back(generator);
  return generator;
}

void tell_unknown(c10::Device device, const std::map<std::string, at::Generator>& bound) {
  const bool is_bound = std::any_of(bound.begin(), bound.end(), [&](const auto& generator) {
    return generator.second.device().type() == device.type();
  });
  if (is_bound) return;
  log_info(
      "checkpoints do not have the default generator of {}, which libtorch does not know: if steps draw random numbers "
      "there (such as dropout's), bind it, for a restart to continue with the same ones: "
      "TorchTrainingOptions::generators = {{{{\"device\", generator}}}}",
      device.str());
}

}  // namespace

std::map<std::string, at::Generator> default_generators_of(const std::vector<at::Tensor>& tensors,
                                                           const std::map<std::string, at::Generator>& bound) {
  std::map<c10::DeviceType, std::set<c10::DeviceIndex>> devices;
  for (const at::Tensor& tensor : tensors) {
    if (!tensor.is_cpu()) devices[tensor.device().type()].insert(tensor.device().index());
  }
  std::map<std::string, at::Generator> generators;
  for (const auto& [type, indices] : devices) {
    int number = 0;
    for (const c10::DeviceIndex index : indices) {
      const c10::Device device(type, index);
      const std::string name = fmt::format("{}_{}", c10::DeviceTypeName(type, /*lower_case=*/true), number++);
      const at::Generator generator = generator_to_use(device);
      const bool is_bound =
          std::any_of(bound.begin(), bound.end(), [&](const auto& other) { return other.second == generator; });
      if (!generator.defined()) {
        tell_unknown(device, bound);
      } else if (!is_bound) {
        generators.emplace(name, generator);
      }
    }
  }
  return generators;
}

std::vector<at::Generator> default_generators_in_use() {
  InUse& in_use = InUse::get();
  const std::lock_guard<std::mutex> lock(in_use.mutex);
  std::vector<at::Generator> generators{at::detail::getDefaultCPUGenerator()};
  generators.insert(generators.end(), in_use.generators.begin(), in_use.generators.end());
  return generators;
}

}  // namespace longhaul
