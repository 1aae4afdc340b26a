#pragma once

#include <vector>

#include "longhaul/cluster/transport/task_frame.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// One of gRPC's channel arguments.
struct LineSetting {
  const char* name;
  int value;
};

// The settings of a connection. Both ends ask each other whether they live, also while there are no calls: after two
// sevenths of TransportLimits::lost_line without a message, and again at most once a second; a question that is not
// answered within four sevenths ends the connection. So a limit below 2.5 s is kept up to a second late.
std::vector<LineSetting> caller_settings(const TransportLimits& limits, const FrameLimits& frames);
std::vector<LineSetting> server_settings(const TransportLimits& limits, const FrameLimits& frames);

// What gRPC can count in a message: its length has 32 bits.
uint64_t most_frame_bytes(const FrameLimits& frames);

}  // namespace longhaul
