#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul {

// What the machine, a container or a batch system lets this process have: its affinity mask, and the limits of its
// control groups (cgroup v2, https://docs.kernel.org/admin-guide/cgroup-v2.html, and v1), those around it too.
//
// `root`: where /proc and /sys are found; tests have trees of their own.

// How many processors it may use at a time: those of the mask of its main thread, whatever a thread that asks is bound
// to, or what `cpu.max` lets it have if that is fewer, rounded up; at least 1.
int usable_processors(const std::string& root = "/");

// How much memory it may have, by `memory.max`; nothing: as much as there is.
std::optional<uint64_t> memory_limit(const std::string& root = "/");

}  // namespace longhaul
