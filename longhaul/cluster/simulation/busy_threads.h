#pragma once

namespace longhaul {

// A thread that waits for simulated time is at rest, even while it looks whether the time has come: from the
// construction to the destruction, on that thread. May be nested.
class ThreadAtRest {
 public:
  ThreadAtRest();
  ~ThreadAtRest();
  ThreadAtRest(const ThreadAtRest&) = delete;
  ThreadAtRest& operator=(const ThreadAtRest&) = delete;
};

// Whether a thread of this process, other than those at rest, runs, waits for a processor or waits for a disk, as the
// system says (/proc/self/task). So a busy machine, on which threads wait for their turn, is told from one that is
// idle. False if the system does not say it; true if another thread asks just now. Any thread.
bool some_thread_is_busy();

}  // namespace longhaul
