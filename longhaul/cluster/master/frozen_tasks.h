#pragma once

#include <set>
#include <string>
#include <vector>

#include "longhaul/cluster/tasks/session_tasks.h"

namespace longhaul {

// Tasks whose gates are shut for a snapshot, so that their variables are those of one moment: between two steps, on all
// of them. No step of several tasks is half done then: what one of them has committed is committed on the others, past
// the gate. Steps wait for some round trips, whatever the model's size. One snapshot at a time has a gate: if another
// has one, all are shut in the order of their tasks, so that none waits for one that waits for it.
//
//   FrozenTasks frozen(tasks, run.tasks());
//   frozen.freeze(limits);
//   ... each task takes its variables for frozen.id(), and opens its gate ...
//
// A gate opens by itself after kLease, or when its task sees that this process has gone. One thread at a time.
class FrozenTasks {
 public:
  static constexpr Seconds kLease{10};

  FrozenTasks(std::shared_ptr<SessionTasks> tasks, std::vector<std::string> frozen);  // sorted
  // Opens the gates, and releases what the tasks have taken, unless keep(); does not wait for it.
  ~FrozenTasks();
  FrozenTasks(const FrozenTasks&) = delete;
  FrozenTasks& operator=(const FrozenTasks&) = delete;

  // Throws the error of a task, or DeadlineExceededError, which names it: a step stayed inside the gate for kLease.
  // AbortedError: the session is lost. UnavailableError: a gate was shut for too long, or is another's; try again.
  void freeze(const WaitLimits& limits);
  // The tasks have opened their gates themselves, and hold nothing.
  void keep() { is_frozen_ = false; }

  const std::string& id() const { return id_; }

 private:
  using Committed = std::vector<std::set<int64_t>>;  // the steps that each task has committed
  void shut_gates(const WaitLimits& limits);
  bool shut_at_once(const WaitLimits& limits, Committed* committed);  // false: another snapshot has a gate
  void shut_in_turn(const WaitLimits& limits, Committed* committed);
  CallRequest request_to(const std::string& task, Seconds wait) const;
  void open();
  WaitLimits within_lease(const WaitLimits& limits) const;
  void resolve(const Committed& committed, const WaitLimits& limits);

  const std::shared_ptr<SessionTasks> tasks_;
  const std::vector<std::string> frozen_;
  std::string id_;  // a new one for each attempt
  bool is_frozen_ = false;
};

}  // namespace longhaul
