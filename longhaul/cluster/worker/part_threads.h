#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// The threads of a task that work for masters, and may wait: one for each part of a step under way, and for whatever
// else cannot be answered at once. A thread that has nothing to do waits for the next job. Any thread may call.
class PartThreads {
 public:
  using Job = std::function<void()>;
  struct Options {
    size_t most = 256;  // jobs at a time
    // For tests whose clock must know that a job is under way: what is handed over passes through it. May be empty.
    std::function<Job(Job)> around{};
  };

  // `task` is for messages.
  PartThreads(std::string task, Clock& clock, Options options);
  ~PartThreads();  // does not wait: stop() comes first
  PartThreads(const PartThreads&) = delete;
  PartThreads& operator=(const PartThreads&) = delete;

  // Runs the job at once, on a thread named lh-part-N; what it throws is logged. ResourceExhaustedError: there are
  // `most` already, or the system gives no thread. UnavailableError: stop.
  void start(Job job);

  // Refuses what comes later. Does not wait.
  void request_stop();
  // Waits until the jobs have ended, which their owner must bring about. False: some have not within that time. Their
  // threads are left behind, and so they must own what they touch. Not from a job.
  bool stop(Seconds timeout);

  size_t busy() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace longhaul
