#include "longhaul/runtime/devices/device_table.h"

#include <c10/core/impl/DeviceGuardImplInterface.h>

#include <algorithm>
#include <atomic>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

std::atomic<c10::DeviceType> gpu_type_now{c10::kCUDA};

// Those that libtorch can use: none without the kind's backend or without its driver.
int devices_of_type(c10::DeviceType type) {
  if (!c10::impl::hasDeviceGuardImpl(type)) return 0;
  const int count = c10::impl::getDeviceGuardImpl(type)->deviceCount();
  static std::atomic<bool> is_told{false};
  if (count == 0 && !is_told.exchange(true)) {
    log_warning("this libtorch can use {} devices, but finds none: sessions compute on the CPU",
                c10::DeviceTypeName(type));
  }
  return count;
}

}  // namespace

void register_gpu_type(c10::DeviceType type) {
  gpu_type_now.store(type);
}

DeviceTable::DeviceTable(const std::string& job, int task, int cpus, int most_gpus)
    : gpu_type_(gpu_type_now.load()),
      cpus_(cpus),
      gpus_(most_gpus == 0 ? 0 : std::min(devices_of_type(gpu_type_), most_gpus)),
      attributes_(cpu_devices(job, task, cpus)) {
  for (DeviceAttributes& gpu : gpu_devices(job, task, gpus_)) attributes_.push_back(std::move(gpu));
  for (const DeviceAttributes& device : attributes_) specs_.push_back(DeviceSpec::parse(device.name));
}

std::optional<size_t> DeviceTable::position_of(const DeviceSpec& wanted) const {
  const auto found =
      std::find_if(specs_.begin(), specs_.end(), [&](const DeviceSpec& full) { return wanted.matches(full); });
  if (found == specs_.end()) return std::nullopt;
  return static_cast<size_t>(found - specs_.begin());
}

std::optional<c10::Device> DeviceTable::find(const DeviceSpec& wanted) const {
  const std::optional<size_t> position = position_of(wanted);
  if (!position) return std::nullopt;
  const int index = static_cast<int>(*position);
  return index < cpus_ ? c10::Device(c10::kCPU) : gpu(index - cpus_);
}

const std::string& DeviceTable::name_of(c10::Device device, const DeviceSpec& asked) const {
  if (!device.is_cpu()) return attributes_.at(static_cast<size_t>(cpus_ + device.index())).name;
  const size_t position = position_of(asked).value_or(0);
  return attributes_.at(position < static_cast<size_t>(cpus_) ? position : 0).name;
}

std::string DeviceTable::short_names() const {
  std::string names;
  for (const DeviceSpec& device : specs_)
    names += (names.empty() ? "" : ", ") + device.type + ":" + std::to_string(device.index.value_or(0));
  return names;
}

}  // namespace longhaul
