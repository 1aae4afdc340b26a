#pragma once

#include <set>
#include <string>
#include <vector>

#include "longhaul/cluster/master/session_tasks.h"

namespace longhaul {

// Tasks whose gates are shut for a snapshot, so that their variables are those of one moment: between two steps, on all
// of them. No step of several tasks is half done then: what one of them has committed is committed on the others, past
// the gate. Steps wait for some round trips, whatever the model's size.
//
//   FrozenTasks frozen(tasks, run.tasks());
//   frozen.freeze(limits);
//   ... each task takes its variables for frozen.id(), and opens its gate ...
//
// A gate opens by itself after kLease, or when its task sees that this process has gone. One thread at a time.
class FrozenTasks {
 public:
  static constexpr Seconds kLease{10};

  FrozenTasks(std::shared_ptr<SessionTasks> tasks, std::vector<std::string> frozen);
  // Opens the gates, and lets go what the tasks have taken, unless keep(); does not wait for it.
  ~FrozenTasks();
  FrozenTasks(const FrozenTasks&) = delete;
  FrozenTasks& operator=(const FrozenTasks&) = delete;

  // Throws the error of a task, or DeadlineExceededError, which names it: a step stayed inside the gate for kLease.
  // AbortedError: the session is lost. UnavailableError: a gate was shut for too long; freeze others.
  void freeze(const WaitLimits& limits);
  // The tasks have opened their gates themselves, and hold nothing.
  void keep() { is_frozen_ = false; }

  const std::string& id() const { return id_; }

 private:
  void shut_gates(const WaitLimits& limits);
  WaitLimits within_lease(const WaitLimits& limits) const;
  void resolve(const std::vector<std::set<int64_t>>& committed, const WaitLimits& limits);

  const std::shared_ptr<SessionTasks> tasks_;
  const std::vector<std::string> frozen_;
  const std::string id_;
  bool is_frozen_ = false;
};

}  // namespace longhaul
