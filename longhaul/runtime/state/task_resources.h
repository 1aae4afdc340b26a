#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "longhaul/base/cancellation.h"
#include "longhaul/base/mutex.h"
#include "longhaul/host/resource.h"
#include "longhaul/io/files/file.h"
#include "longhaul/runtime/devices/device_table.h"
#include "longhaul/runtime/state/step_gate.h"
#include "longhaul/runtime/state/variable_store.h"

namespace longhaul {

// The variables and other resources (queues, tables, readers, random streams) that some sessions share, each found by
// a container and a name. Any thread.
struct Containers {
  Containers(const std::string& default_container, std::optional<uint64_t> snapshot_memory, Clock& clock)
      : variables(snapshot_memory, clock), resources(default_container) {}
  // Others, whose variables are in the same memory and under the same limit.
  explicit Containers(const Containers* neighbour)
      : variables(&neighbour->variables), resources(neighbour->resources.default_container()) {}

  VariableStore variables;
  ResourceMap resources;
};

struct TaskOptions {
  std::string job = kLocalContainer;  // also the name of the default container
  int task = 0;
  int cpu_devices = 1;
  int most_gpus = 0;                          // of those that this process has, the session's are the first
  std::optional<uint64_t> snapshot_memory{};  // as in SessionOptions
  // What operations do with files; must outlive the task. A server's are rooted (io/files/rooted_files.h).
  FileSystem* files = &FileSystem::real();
  Clock* clock = &Clock::real();  // of the gate, of leases and of waits for changes
};

// What lives as long as a task, in its server or in this process, and outlives each of its sessions: devices,
// containers, the gate between steps and snapshots, files. Any thread.
class TaskResources {
 public:
  explicit TaskResources(TaskOptions options = {});

  const DeviceTable& device_table() const { return devices_; }
  const std::vector<DeviceAttributes>& devices() const { return devices_.attributes(); }
  const std::string& default_container() const { return options_.job; }
  FileSystem& files() { return *options_.files; }
  Clock& clock() { return *options_.clock; }
  StepGate& gate() { return gate_; }
  // The containers that all sessions share, unless they isolate their state.
  const std::shared_ptr<Containers>& containers() { return containers_; }
  VariableStore& variables() { return containers_->variables; }
  ResourceMap& host_resources() { return containers_->resources; }
  StateChanges& changes() { return variables().changes(); }

  // Empties these containers; without names, all of them. All sessions that are there end with AbortedError, those
  // that isolate their state too: their runs under way end at their next wait, but may still read and write what they
  // hold, which nobody sees any more. Waits on queues that are gone end as well. A session that is made later finds
  // variables uninitialised. An absent container is no error.
  void reset(const std::vector<std::string>& containers) EXCLUDES(mutex_);

  // For SessionState: its cancellation, which a reset aborts.
  void add_session(const std::shared_ptr<Cancellation>& session) EXCLUDES(mutex_);

 private:
  void abort_sessions(const std::string& why) EXCLUDES(mutex_);
  bool remove_unless_used(const std::vector<std::string>& containers, std::vector<std::shared_ptr<Resource>>* removed)
      EXCLUDES(mutex_);

  const TaskOptions options_;
  const DeviceTable devices_;
  const std::shared_ptr<Containers> containers_;
  StepGate gate_;
  Mutex mutex_;
  std::vector<std::weak_ptr<Cancellation>> sessions_ GUARDED_BY(mutex_);
};

}  // namespace longhaul
