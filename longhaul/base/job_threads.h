#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/base/clock.h"

namespace longhaul {

// Threads that work for others, on jobs that may wait: each job has one for itself. Jobs that find all of them at work
// stand in a queue, if there is one. A thread that has nothing to do waits for the next job, or ends if enough others
// do. Any thread may call.
//
//   threads.start(job) ... threads.request_stop(why) --> what the jobs wait for is ended --> threads.stop(timeout)
class JobThreads {
 public:
  using Job = std::function<void()>;
  struct Names {           // for messages, but the first
    std::string thread{};  // "lh-part": the threads are named lh-part-0, ...
    std::string owner{};   // "task /job:ps/replica:0/task:0"
    std::string jobs{};    // "calls of clients"
  };
  struct Options {
    size_t most = 64;        // jobs at a time, each on a thread
    size_t most_queued = 0;  // jobs that wait for their turn; 0: one that may wait for others must not wait behind them
    size_t most_idle = 4;    // threads that wait for the next job; others end
    // For tests whose clock must know that a job is under way: what is handed over passes through it. May be empty.
    std::function<Job(Job)> around{};
  };

  JobThreads(Clock& clock, Names names, Options options);
  ~JobThreads();  // does not wait: stop() comes first
  JobThreads(const JobThreads&) = delete;
  JobThreads& operator=(const JobThreads&) = delete;

  // Runs the job on a thread, as soon as one has time; what it throws is logged. ResourceExhaustedError: there are as
  // many jobs as may be, or the system gives no thread and the job may not wait. UnavailableError: stop.
  void start(Job job);

  // Refuses what comes later, with the first reason; what stands in the queue is still run. Does not wait.
  void request_stop(const std::string& why);
  // After it, waits until the jobs have ended, which their owner must bring about. False: some have not within that
  // time. Their threads are left behind, and so they must own what they touch. Not from a job.
  bool stop(Seconds timeout);

  size_t busy() const;     // jobs under way or in the queue
  size_t threads() const;  // that have not ended

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace longhaul
