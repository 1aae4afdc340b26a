#pragma once

#include <string>
#include <vector>

#include "longhaul/cluster/transport/task_frame.h"
#include "longhaul/cluster/transport/transport.h"

namespace longhaul {

// One of gRPC's channel arguments.
struct LineSetting {
  const char* name;
  int value;
};

// The settings of a connection. Both ends ask each other whether they live, also while there are no calls: when nothing
// has come for TransportLimits::kAskAfter, which is also how often gRPC lets a caller ask. A question that is not
// answered within TransportLimits::lost_line ends the connection, and so do bytes that the peer's machine has not
// acknowledged for so long (TCP_USER_TIMEOUT, which gRPC and our ConnectionDoor set to the same value). So
//   - a peer whose process is paused for less than lost_line keeps all its connections;
//   - a line that is cut is noticed lost_line to TransportLimits::longest_cut() after the last byte has come, or
//     lost_line after the first byte that was sent in vain, if that is sooner;
//   - a line that is cut for less than lost_line and mended may be lost nevertheless if it is cut for longer than about
//     1.4 s: TCP sends again after 0.2, 0.6, 1.4 and 3 s.
std::vector<LineSetting> caller_settings(const TransportLimits& limits, const FrameLimits& frames);
std::vector<LineSetting> server_settings(const TransportLimits& limits, const FrameLimits& frames);

// InvalidArgumentError: it is not from 0.1 s to an hour; `what` is whose it is, "ServerOptions::lost_line of ...".
void check_lost_line(Seconds lost_line, const std::string& what);

// What gRPC can count in a message: its length has 32 bits.
uint64_t most_frame_bytes(const FrameLimits& frames);

}  // namespace longhaul
