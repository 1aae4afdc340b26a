#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/cluster/master/cluster_run.h"
#include "longhaul/cluster/master/frozen_tasks.h"

namespace longhaul {

// A snapshot of several tasks whose values stay where they are, for whoever writes them there: each task holds its own
// under the snapshot's id, for kLease after the last renew(), or until this is destroyed. One thread at a time.
class TakenSnapshot {
 public:
  static constexpr Seconds kLease{300};

  // A value on its task, for each fetch.
  struct Value {
    std::string task;
    std::string name;  // on the task: "w/read:0"
    bool operator==(const Value&) const = default;
  };

  // Takes the values of a snapshot run at one moment. `global_step`: the index of the fetch whose value is wanted here.
  // Throws what FrozenTasks::freeze() throws, and UnavailableError: a task was frozen for too long, so take another.
  TakenSnapshot(std::shared_ptr<SessionTasks> tasks, std::shared_ptr<const ClusterRun> run,
                std::optional<size_t> global_step, const WaitLimits& limits);

  const std::string& id() const { return frozen_.id(); }
  const std::vector<Value>& values() const { return values_; }
  std::optional<int64_t> global_step() const { return global_step_; }

  // Each task keeps the values for another kLease. AbortedError: one has let them go.
  void renew(const WaitLimits& limits) { take(limits); }
  // The same, if a third of the lease has passed since the last time.
  void renew_if_due(const WaitLimits& limits);

  // Where a snapshot run computes its fetches.
  static std::vector<Value> places_of(const ClusterRun& run);

 private:
  void take(const WaitLimits& limits);
  proto::TakeRequest request_for(const ClusterRun::Part& part) const;

  const std::shared_ptr<SessionTasks> tasks_;
  const std::shared_ptr<const ClusterRun> run_;
  FrozenTasks frozen_;
  std::vector<Value> values_;
  std::string global_step_name_;
  std::optional<int64_t> global_step_;
  Seconds renewed_{0};
};

}  // namespace longhaul
