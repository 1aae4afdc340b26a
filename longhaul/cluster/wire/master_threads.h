#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// The threads of a master that work for clients, and may wait: one for each call under way. Calls that find them all at
// work stand in a queue. Any thread may call.
class MasterThreads {
 public:
  using Job = std::function<void()>;
  struct Options {
    size_t most = 64;  // jobs at a time, each on a thread
    size_t most_queued = 256;
    size_t most_idle = 4;  // threads that wait for the next job; others end
    // For tests whose clock must know that a job is under way: what is handed over passes through it. May be empty.
    std::function<Job(Job)> around{};
  };

  MasterThreads(Clock& clock, Options options);
  ~MasterThreads();  // does not wait: stop() comes first
  MasterThreads(const MasterThreads&) = delete;
  MasterThreads& operator=(const MasterThreads&) = delete;

  // Runs the job on a thread named lh-master-N, as soon as one has time; what it throws is logged.
  // ResourceExhaustedError: the queue is full, or there is no thread and the system gives none. UnavailableError: stop.
  void start(Job job);

  // Refuses what comes later, with the reason; what stands in the queue is still run. Does not wait.
  void request_stop(const std::string& why);
  // After it, waits until the jobs have ended, which their owner must bring about. False: some have not within that
  // time. Their threads are left behind, and so they must own what they touch. Not from a job.
  bool stop(Seconds timeout);

  size_t threads() const;  // that have not ended

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace longhaul
