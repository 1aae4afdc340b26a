#include "longhaul/binding/devices/default_generators.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <c10/core/DeviceType.h>
#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>
#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

// Graphs may go at the very end of the program, so this stays.
struct Known {
  std::mutex mutex;
  std::map<c10::DeviceType, std::function<at::Generator(c10::Device)>> registered;  // guarded by the mutex
  std::vector<at::Generator> in_use;                                                // the same

  static Known& get() {
    static auto* known = new Known;
    return *known;
  }
};

// Undefined: nobody knows it.
at::Generator default_generator_of(c10::Device device) {
  Known& known = Known::get();
  const std::lock_guard<std::mutex> lock(known.mutex);
  at::Generator generator;
  if (const auto found = known.registered.find(device.type()); found != known.registered.end()) {
    generator = found->second(device);
  } else {
    try {
      generator = at::globalContext().defaultGenerator(device);
    } catch (const c10::Error& error) {
      log_debug("libtorch knows no default generator of {}: {}", device.str(), error.what_without_backtrace());
    }
  }
  if (generator.defined() && std::find(known.in_use.begin(), known.in_use.end(), generator) == known.in_use.end())
    known.in_use.push_back(generator);
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

void register_default_generators(c10::DeviceType type, std::function<at::Generator(c10::Device)> find) {
  Known& known = Known::get();
  const std::lock_guard<std::mutex> lock(known.mutex);
  if (find) {
    known.registered[type] = std::move(find);
  } else {
    known.registered.erase(type);
  }
}

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
      const at::Generator generator = default_generator_of(device);
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
  Known& known = Known::get();
  const std::lock_guard<std::mutex> lock(known.mutex);
  std::vector<at::Generator> generators{at::detail::getDefaultCPUGenerator()};
  generators.insert(generators.end(), known.in_use.begin(), known.in_use.end());
  return generators;
}

}  // namespace longhaul
