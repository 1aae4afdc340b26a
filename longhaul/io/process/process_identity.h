#pragma once

#include <cstdint>
#include <string>

namespace longhaul {

// Identifies a process among all that ever existed. The pid alone is not enough: pids are reused, and each container
// has its own. Fields that the system does not report are empty or 0.
struct ProcessIdentity {
  std::string host;           // its name, for messages; not necessarily unique
  std::string boot_id;        // of the running kernel: the same in all containers of a machine, until it reboots
  std::string pid_namespace;  // the namespace of `pid`
  int64_t pid = 0;            // in that namespace
  uint64_t start_time = 0;    // in clock ticks since the boot
  bool operator==(const ProcessIdentity&) const = default;
};

// After a fork(), the child has its own identity.
ProcessIdentity this_process();

enum class ProcessState {
  kRunning,
  kGone,     // ended, perhaps still a zombie
  kUnknown,  // on another machine, in another container, or hidden from this user
};
ProcessState state_of(const ProcessIdentity& process);

}  // namespace longhaul
