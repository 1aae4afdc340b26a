#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/mutex.h"

namespace longhaul {

// Some of the messages of a simulated network. What is empty fits all.
struct MessageKind {
  std::string from{}, to{}, method{};
  bool is_reply = false;
};

// What happens to one message of a simulated network: the `message`-th that is sent, counted from 1, calls and replies
// alike; or, with `of`, the `message`-th of that kind from SimulatedNetwork::plan() on.
struct NetworkFault {
  enum class Kind {
    kLose,                // it never arrives, and its connection breaks (TransportLimits::longest_cut)
    kLoseReply,           // of a call: it is handled, but its reply never arrives; of a reply: the same as kLose
    kDouble,              // it arrives twice
    kDelay,               // it arrives after `time`, behind all that is sent meanwhile
    kCut,                 // before it arrives the line between the two tasks is cut; mended after `time`
    kCutOneWay,           // the same, in its direction only
    kKillSenderBefore,    // the sender dies and it is not sent; restarted after `time`
    kKillSenderAfter,     // the sender dies, but it arrives
    kKillReceiverBefore,  // the receiver dies before it arrives
    kKillReceiverAfter,   // the receiver dies once its handler has returned
  };

  Kind kind = Kind::kLose;
  uint64_t message = 1;
  Seconds time{1};  // 0: a cut is not mended, a task not restarted
  std::optional<MessageKind> of{};
};

// All kinds, for loops over them.
const std::vector<NetworkFault::Kind>& all_network_faults();

std::string to_string(const NetworkFault& fault);  // "message 3: kill the receiver before, for 1 s"

}  // namespace longhaul
