#pragma once

#include <atomic>

namespace longhaul {

// The handler of fatal signals: CrashRecord.

// From now on a line is appended to `fd` for each signal; nullptr: too many descriptors. The first one installs the
// handler.
std::atomic<int>* add_crash_descriptor(int fd);

// Stops that: once it returns, nothing writes to `fd`. Removing the last one restores the previous handlers, unless
// others have been installed on top.
void remove_crash_descriptor(std::atomic<int>* place, int fd);

}  // namespace longhaul
