#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "longhaul/cluster/master/cluster_run.h"
#include "longhaul/cluster/master/slow_step.h"
#include "longhaul/cluster/transport/call_group.h"

namespace longhaul {

// One execution of a run, on all its tasks at once. It takes place on all of them or on none:
//
//   running --all that commit are prepared--> decided --all have committed--> done
//      |                                        | error, deadline
//      +--error, deadline, cancel--> aborted    +--> the commits go on by themselves
//
// A cancel comes too late for a step that is decided: its end is awaited for ten seconds all the same. If only one task
// commits, or none, nothing is decided here: one round trip. A step that takes long is logged (slow_step.h). One
// thread; used once.
class ClusterStep {
 public:
  // `limits` end the caller's wait; their cancellation is the run's, and ends when the session's does. `snapshot`: the
  // id for which the tasks are frozen; empty: none. `trace`: what the tasks record of their parts is added to it; null:
  // nothing.
  ClusterStep(std::shared_ptr<SessionTasks> tasks, std::shared_ptr<const ClusterRun> run, const WaitLimits& limits,
              std::string snapshot = {}, proto::StepStats* trace = nullptr);

  // Returns a tensor for each fetch; for an operation an undefined one.
  //
  // Throws the first error of a task that does not follow from another one, whole: "From TASK:\n...". The other tasks
  // are told at once. The error says whether the step was committed, where that is not plain, and has it as a property
  // (Error::failed_step()).
  //   - DeadlineExceededError: names a task that has not answered, and says where the step is on all of them
  //   - CancelledError: the caller no longer wants the run, or the session was closed
  //   - AbortedError: a task was lost, and with it the session
  //   - UnavailableError: a line is broken, or a snapshot came too late; the session lives
  std::vector<Tensor> run(std::span<const Tensor* const> feeds);

 private:
  using Part = ClusterRun::Part;

  void start_parts(std::span<const Tensor* const> feeds);
  void start_commits();
  void await_answer();
  std::optional<CallGroup::Ended> next_answer();  // nullopt: the limits are over
  void take_answer(const CallGroup::Ended& ended);
  const Part& part_of(size_t call) const { return run_->parts[parts_[call]]; }
  bool is_commit(size_t call) const { return call >= run_->parts.size(); }

  [[noreturn]] void interrupted();
  [[noreturn]] void fail(std::exception_ptr error);
  void abort_others(const std::exception_ptr& error, CallGroup& aborts);
  std::exception_ptr cause_of(std::exception_ptr error);
  std::exception_ptr loss_behind(std::exception_ptr error);
  StepFate outcome_after(const std::exception_ptr& error, CallGroup& aborts);

  const std::shared_ptr<SessionTasks> tasks_;
  const std::shared_ptr<const ClusterRun> run_;
  const WaitLimits limits_;
  const std::string snapshot_;
  proto::StepStats* const trace_;
  const int64_t step_;
  SlowStep slow_;
  CallGroup calls_;            // RunPart to each part, then Commit to those that commit
  std::vector<size_t> parts_;  // of each call
  std::string failed_task_;    // which has told of the error
  struct Progress {
    size_t prepared = 0;  // parts
    bool is_decided = false;
    bool has_committed = false;  // a task has said so
  } progress_;
  std::vector<Tensor> results_;
};

}  // namespace longhaul
