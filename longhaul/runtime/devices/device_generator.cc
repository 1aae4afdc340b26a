#include "longhaul/runtime/devices/device_generator.h"

#include <ATen/Context.h>
#include <c10/util/Exception.h>

#include <map>
#include <mutex>
#include <utility>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

// Graphs may go at the very end of the program, so this stays.
struct Registered {
  std::mutex mutex;
  std::map<c10::DeviceType, std::function<at::Generator(c10::Device)>> by_type;  // guarded by the mutex

  static Registered& get() {
    static auto* registered = new Registered;
    return *registered;
  }
};

std::function<at::Generator(c10::Device)> find_registered(c10::DeviceType type) {
  const std::lock_guard<std::mutex> lock(Registered::get().mutex);
  const auto found = Registered::get().by_type.find(type);
  return found == Registered::get().by_type.end() ? nullptr : found->second;
}

}  // namespace

void register_default_generators(c10::DeviceType type, std::function<at::Generator(c10::Device)> find) {
  const std::lock_guard<std::mutex> lock(Registered::get().mutex);
  if (find) {
    Registered::get().by_type[type] = std::move(find);
  } else {
    Registered::get().by_type.erase(type);
  }
}

at::Generator default_generator_of(c10::Device device) {
  if (const auto find = find_registered(device.type())) return find(device);
  try {
    return at::globalContext().defaultGenerator(device);
  } catch (const c10::Error& error) {
    log_debug("libtorch knows no default generator of {}: {}", device.str(), error.what_without_backtrace());
    return {};
  }
}

}  // namespace longhaul
