#pragma once

#include <c10/core/Stream.h>

#include <vector>

#include "longhaul/runtime/devices/device_table.h"

namespace longhaul {

// While it exists, the calling thread uses the default stream of each GPU. All plans of a session do, whatever streams
// their threads have chosen: so the devices do in order what the host did in order, and variables need no events.
class OnDefaultStreams {
 public:
  explicit OnDefaultStreams(const DeviceTable& devices);
  ~OnDefaultStreams();
  OnDefaultStreams(const OnDefaultStreams&) = delete;

 private:
  std::vector<c10::Stream> before_;  // of each GPU
};

}  // namespace longhaul
