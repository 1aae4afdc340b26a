#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul {

// The resources that the machine, a container or a batch system allows this process: its affinity mask, and the limits
// of its control groups (cgroup v2, https://docs.kernel.org/admin-guide/cgroup-v2.html, and v1), including the
// enclosing groups.
//
// `root`: where /proc and /sys are found; tests use their own trees.

// How many processors the process may use at a time: those in the mask of its main thread, whatever the calling thread
// is bound to, or the share that `cpu.max` allows if that is fewer, rounded up; at least 1.
int usable_processors(const std::string& root = "/");

// How much memory the process may use, by `memory.max`; nullopt: unlimited.
std::optional<uint64_t> memory_limit(const std::string& root = "/");

// How many threads the process and all others of its control groups may have, by `pids.max`; nullopt: unlimited.
std::optional<uint64_t> thread_limit(const std::string& root = "/");

}  // namespace longhaul
