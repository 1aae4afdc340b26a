#pragma once

#include <memory>
#include <string>

#include "longhaul/cluster/worker/worker_state.h"

namespace longhaul {

// What a task does for the masters of its cluster: keeps the parts of their runs, runs them, commits them together with
// the parts of other tasks, and takes its part of snapshots. A master is a task, too, perhaps this one.
//
//   GetStatus                          --> devices, incarnation
//   Watch                              --> a session, until either side ends it
//   RegisterGraph                      --> a part of a run, compiled once
//   RunPart [--> Commit | Abort]       --> a step (step_life.h); Deliver brings what other parts send
//   LookAtStep                         --> where the step is now
//   Freeze [--> Commit] --> Take, Open --> a snapshot
//   DescribeTaken, ReadTaken, WriteShard --> its values, for a checkpoint; LookAtFile: whether its directory is seen
//
// All calls may be lost, doubled and late (docs/formats/task_messages.md). A master that dies ends its sessions within
// the time in which the transport notices. Variables belong to the task's resources, and stay.
//
//   Worker worker(*transport, std::make_shared<TaskResources>(TaskOptions{.job = "ps"}));
//   ...
//   worker.stop("the program ends", Seconds{10});
class Worker {
 public:
  // Serves from now on. The transport must outlive the worker; what the transport has been told to serve keeps the
  // resources until it is destroyed.
  Worker(Transport& transport, std::shared_ptr<TaskResources> resources, const WorkerOptions& options = {});
  ~Worker();  // stop() with 10 s
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  TaskResources& resources() const { return *state_->resources; }

  // Tells the sessions that have asked for it (StopNoticing), those of the chief, that the task goes in that time, so
  // that what it has of the model is saved. Everything continues until then; request_stop() or stop() comes after it.
  // Returns how many were told.
  size_t announce_stop(Seconds grace);
  // Waits until the last session has ended, by its master or by a stop, until that time on the transport's clock.
  // False: there still are some.
  bool wait_until_unused(Seconds until);

  // Ends all sessions, steps and waits; whoever calls later gets UnavailableError. Does not wait, and may be called
  // from anywhere, and again.
  void request_stop(const std::string& why);
  // The same, and waits until the jobs have ended. False: some have not, and are left behind (JobThreads::stop). Not
  // from a thread of the transport.
  bool stop(const std::string& why, Seconds timeout);

  // How much there is at the moment, so that a test or a log line can say that nothing is left.
  struct Counts {
    size_t sessions = 0;
    size_t steps = 0;  // under way, or not cleaned up
    size_t jobs = 0;
    size_t waits_for_changes = 0;
    size_t bundles = 0;  // that wait to be asked for
    bool gate_is_shut = false;
    bool operator==(const Counts&) const = default;
  };
  Counts counts() const;

 private:
  const std::shared_ptr<WorkerState> state_;
};

}  // namespace longhaul
