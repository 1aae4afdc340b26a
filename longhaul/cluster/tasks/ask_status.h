#pragma once

#include <map>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/cluster/transport/transport.h"
#include "longhaul/proto/cluster.pb.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/device_attributes.h"

namespace longhaul {

// What a task says of itself.
struct TaskStatus {
  uint64_t incarnation = 0;
  std::vector<DeviceAttributes> devices;
  std::string task;                   // its own name for itself
  proto::ClusterDef cluster;          // of a server
  proto::ConfigProto session_config;  // of a server: what its sessions leave out
};

// Asks the tasks, given by name or address, for their devices, all at once, and waits until each has answered. One that
// is not there is asked again and again, and named in the log every 10 s ("CreateSession still waiting for response
// from worker: ..."). UnavailableError: a task has not answered for `max_wait`; DeadlineExceededError, or what
// cancelled: `limits`; the error of a task that refuses to answer.
std::map<std::string, TaskStatus> ask_status(Transport& transport, const std::vector<std::string>& tasks,
                                             Seconds max_wait, const WaitLimits& limits);

// The same of those that answer within `most`: the others are left out.
std::map<std::string, TaskStatus> status_of_those_there(Transport& transport, const std::vector<std::string>& tasks,
                                                        Seconds most, const WaitLimits& limits);

}  // namespace longhaul
