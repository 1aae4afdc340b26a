#pragma once

#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/graph/operation.h"
#include "longhaul/host/queues/random_stream.h"
#include "longhaul/runtime/state/leases.h"
#include "longhaul/runtime/state/task_resources.h"
#include "longhaul/session/session.h"

namespace longhaul {

// What the plans of one session use: the resources of its task, and what is its own. Any thread.
class SessionState {
 public:
  // `isolated`: with containers of its own, which end with it (SessionOptions::isolate_session_state). The options tell
  // how operations are placed.
  explicit SessionState(std::shared_ptr<TaskResources> task = std::make_shared<TaskResources>(), bool isolated = false,
                        const SessionOptions& options = {});

  TaskResources& task() { return *task_; }
  VariableStore& variables() { return containers_->variables; }
  ResourceMap& host_resources() { return containers_->resources; }
  StepGate& gate() { return task_->gate(); }
  FileSystem& files() { return task_->files(); }
  // Of all runs of the session; a reset of the task aborts it.
  Cancellation& cancellation() { return *cancellation_; }
  // For what outlives the session and does something when it ends.
  const std::shared_ptr<Cancellation>& shared_cancellation() const { return cancellation_; }
  // What snapshots of several tasks keep here until it is written.
  Leases<std::vector<Tensor>>& snapshots() { return snapshots_; }
  bool isolated() const { return containers_ != task_->containers(); }

  bool allows_soft_placement() const { return allows_soft_placement_; }
  bool logs_placement() const { return logs_placement_; }
  // The log says where the operation is, once, if it is to: "w: (VariableV2): /job:localhost/.../device:GPU:0".
  void log_placement(const Operation& op, const std::string& device) EXCLUDES(mutex_);

  std::shared_ptr<VariableSlot> variable(const Operation& variable) {
    return variables().slot(resource_name(variable, task_->default_container()));
  }
  std::shared_ptr<RandomStream> random_stream(const Operation& op) {
    return longhaul::random_stream(op, host_resources());
  }

 private:
  const std::shared_ptr<TaskResources> task_;
  const std::shared_ptr<Containers> containers_;
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  Leases<std::vector<Tensor>> snapshots_;
  const bool allows_soft_placement_, logs_placement_;
  Mutex mutex_;
  std::unordered_set<Operation, OperationHash> logged_ GUARDED_BY(mutex_);  // by log_placement()
};

}  // namespace longhaul
