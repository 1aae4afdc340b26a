#pragma once

#include <cstdint>
#include <string>

namespace longhaul {

// Which process, of all that there ever were. Its number alone does not say: numbers are used again, and each container
// counts its own. What the system does not tell is empty or 0.
struct ProcessIdentity {
  std::string host;           // its name, for people: several machines may have the same
  std::string boot_id;        // of the running kernel: all containers of a machine, until it is booted again
  std::string pid_namespace;  // within which `pid` counts
  int64_t pid = 0;            // in that namespace
  uint64_t start_time = 0;    // in clock ticks since the boot
  bool operator==(const ProcessIdentity&) const = default;
};

// After a fork() the child has its own.
ProcessIdentity this_process();

enum class ProcessState {
  kRunning,
  kGone,     // ended; or killed, and nobody has asked for its status yet
  kUnknown,  // of another machine, another container, or hidden from this user
};
ProcessState state_of(const ProcessIdentity& process);

}  // namespace longhaul
