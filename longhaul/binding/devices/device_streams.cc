#include "longhaul/binding/devices/device_streams.h"

#include <c10/core/DeviceType.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "longhaul/base/log.h"

namespace longhaul {
namespace {

c10::Stream current_stream(c10::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

bool try_streams(c10::Device device) {
  if (device.is_cpu() || device.is_meta() || !c10::impl::hasDeviceGuardImpl(device.type())) return false;
  try {
    const c10::Stream stream = current_stream(device);
    c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device, /*isHighPriority=*/false);
    c10::Event event(device.type());
    event.record(stream);
    event.block(stream);
    return true;
  } catch (const c10::Error& error) {
    log_info("{} has no streams and events, so training waits while snapshots are copied from it: {}", device.str(),
             error.what_without_backtrace());
    return false;
  }
}

}  // namespace

bool has_streams(c10::Device device) {
  if (device.is_cpu()) return false;
  static std::mutex mutex;
  static auto* known = new std::map<c10::DeviceType, bool>;
  const std::lock_guard<std::mutex> lock(mutex);
  const auto [found, is_new] = known->emplace(device.type(), false);
  if (is_new) found->second = try_streams(device);
  return found->second;
}

void DeviceStreams::add(const at::Tensor& tensor) {
  if (!has_streams(tensor.device())) return;
  const bool is_known = std::any_of(streams_.begin(), streams_.end(),
                                    [&](const c10::Stream& stream) { return stream.device() == tensor.device(); });
  if (!is_known) streams_.push_back(current_stream(tensor.device()));
}

void DeviceStreams::note() {
  for (c10::Stream& stream : streams_) stream = current_stream(stream.device());
}

DeviceStreams::Use::Use(const DeviceStreams& streams) {
  for (const c10::Stream& stream : streams.streams_) {
    before_.push_back(c10::impl::VirtualGuardImpl(stream.device_type()).exchangeStream(stream));
  }
}

DeviceStreams::Use::~Use() {
  for (const c10::Stream& stream : before_) {
    c10::impl::VirtualGuardImpl(stream.device_type()).exchangeStream(stream);
  }
}

}  // namespace longhaul
