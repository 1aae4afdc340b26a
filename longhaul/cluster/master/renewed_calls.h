#pragma once

#include "longhaul/cluster/master/taken_snapshot.h"
#include "longhaul/cluster/transport/call_group.h"

namespace longhaul {

// Calls that use the values of a snapshot, and may take longer than its lease: while they are waited for, the tasks are
// told to keep the values. One thread uses it; what it is made of must outlive it.
class RenewedCalls {
 public:
  RenewedCalls(SessionTasks& tasks, TakenSnapshot& taken) : tasks_(tasks), taken_(taken), calls_(tasks.transport()) {}

  // Returns the call's number, counted from 0. It ends with DeadlineExceededError after `longest`.
  size_t start(const std::string& task, const char* method, Message message, Seconds longest);

  // Waits for the next call that ends; one must be under way. Throws its error, then the others are given up with this;
  // AbortedError: the session is lost; CancelledError: it was closed.
  CallGroup::Ended next();

 private:
  SessionTasks& tasks_;
  TakenSnapshot& taken_;
  CallGroup calls_;
};

}  // namespace longhaul
