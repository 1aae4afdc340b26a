#include "longhaul/runtime/devices/default_streams.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace longhaul {

OnDefaultStreams::OnDefaultStreams(const DeviceTable& devices) {
  for (int i = 0; i < devices.gpus(); ++i) {
    const c10::impl::VirtualGuardImpl of_type(devices.gpu(i).type());
    before_.push_back(of_type.exchangeStream(of_type.getDefaultStream(devices.gpu(i))));
  }
}

OnDefaultStreams::~OnDefaultStreams() {
  for (const c10::Stream& stream : before_) c10::impl::VirtualGuardImpl(stream.device_type()).exchangeStream(stream);
}

}  // namespace longhaul
