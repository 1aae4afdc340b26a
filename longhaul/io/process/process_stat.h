#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace longhaul {

// What the kernel says of a process (proc(5), /proc/PID/stat).
struct ProcessStat {
  char state = '?';         // of its main thread: 'R', 'S', 'D', 'Z', ...
  uint64_t start_time = 0;  // in clock ticks since the boot
};

// nullopt: there is none of this number here, or it is hidden from this user.
std::optional<ProcessStat> process_stat(int64_t pid);

// Whether none of its threads runs, until somebody lets them: it has had a SIGSTOP, or a debugger holds it. One that is
// traced (strace) is not: each of its threads is held for a moment at a time. `proc`: where the kernel says so.
bool is_held(int64_t pid, const std::string& proc = "/proc");

}  // namespace longhaul
