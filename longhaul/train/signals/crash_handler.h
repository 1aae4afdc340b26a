#pragma once

#include <atomic>

namespace longhaul {

// The handler of fatal signals: CrashRecord.

// From now on a line for each signal is appended to `fd`; nullptr: there are too many. With the first one the handler
// is installed, where it is not yet.
std::atomic<int>* add_crash_descriptor(int fd);

// No more: when it returns, nobody writes to it. With the last one the handlers of before are back, unless others have
// been put on top since.
void remove_crash_descriptor(std::atomic<int>* place, int fd);

}  // namespace longhaul
