#include "longhaul/cluster/simulation/network_fault.h"

#include <fmt/format.h>

namespace longhaul {
namespace {

using FaultKind = NetworkFault::Kind;

const char* fault_text(FaultKind kind) {
  switch (kind) {
    case FaultKind::kLose: return "lose it";
    case FaultKind::kLoseReply: return "lose its reply";
    case FaultKind::kDouble: return "double it";
    case FaultKind::kDelay: return "delay it";
    case FaultKind::kCut: return "cut the line";
    case FaultKind::kCutOneWay: return "cut the line one way";
    case FaultKind::kKillSenderBefore: return "kill the sender before";
    case FaultKind::kKillSenderAfter: return "kill the sender after";
    case FaultKind::kKillReceiverBefore: return "kill the receiver before";
    case FaultKind::kKillReceiverAfter: return "kill the receiver after";
  }
  return "";
}

}  // namespace

const std::vector<NetworkFault::Kind>& all_network_faults() {
  static const std::vector<FaultKind> kinds = {FaultKind::kLose,
                                               FaultKind::kLoseReply,
                                               FaultKind::kDouble,
                                               FaultKind::kDelay,
                                               FaultKind::kCut,
                                               FaultKind::kCutOneWay,
                                               FaultKind::kKillSenderBefore,
                                               FaultKind::kKillSenderAfter,
                                               FaultKind::kKillReceiverBefore,
                                               FaultKind::kKillReceiverAfter};
  return kinds;
}

std::string to_string(const NetworkFault& fault) {
  const MessageKind of = fault.of.value_or(MessageKind());
  const std::string kind =
      fault.of ? fmt::format(" of {}{} from {} to {}", of.method, of.is_reply ? " reply" : "", of.from, of.to) : "";
  return fmt::format("message {}{}: {}, for {} s", fault.message, kind, fault_text(fault.kind), fault.time.count());
}

}  // namespace longhaul
