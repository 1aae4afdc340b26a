#pragma once

#include <cstdint>
#include <optional>

namespace longhaul {

// What the kernel says of a process (proc(5), /proc/PID/stat).
struct ProcessStat {
  char state = '?';         // 'R', 'S', 'D', 'Z', ...
  uint64_t start_time = 0;  // in clock ticks since the boot
};

// nullopt: there is none of this number here, or it is hidden from this user.
std::optional<ProcessStat> process_stat(int64_t pid);

// Whether none of its threads runs, until somebody lets them: it has had a SIGSTOP, or a debugger holds it.
bool is_held(const ProcessStat& stat);

}  // namespace longhaul
