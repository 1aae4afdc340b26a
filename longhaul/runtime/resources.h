#pragma once

#include <ATen/core/Generator.h>

#include <map>
#include <mutex>
#include <string>

#include "longhaul/base/cancellation.h"
#include "longhaul/graph/operation.h"
#include "longhaul/host/resource.h"
#include "longhaul/io/file.h"
#include "longhaul/runtime/step_gate.h"
#include "longhaul/runtime/variable_store.h"

namespace longhaul {

// What the operations of one session share. Any thread.
class SessionResources {
 public:
  explicit SessionResources(uint64_t seed, int cpu_devices = 1, FileSystem& files = FileSystem::real(),
                            std::optional<uint64_t> snapshot_memory = std::nullopt)
      : seed_(seed), cpu_devices_(cpu_devices), files_(files), variables_(snapshot_memory) {}

  VariableStore& variables() { return variables_; }
  StepGate& gate() { return gate_; }
  FileSystem& files() { return files_; }
  ResourceMap& host_resources() { return host_resources_; }  // queues, tables, readers
  Cancellation& cancellation() { return cancellation_; }     // of all runs of the session

  // InvalidArgumentError: the operation is pinned to a device that this session does not have.
  void check_device(const Operation& op) const;

  // The stream of random numbers of the operation of that name, seeded by the graph's seed and the name; it goes on
  // from run to run.
  at::Generator generator(const std::string& operation);

 private:
  const uint64_t seed_;
  const int cpu_devices_;
  FileSystem& files_;
  VariableStore variables_;
  StepGate gate_;
  ResourceMap host_resources_;
  Cancellation cancellation_;
  std::mutex mutex_;
  std::map<std::string, at::Generator> generators_;  // guarded by mutex_
};

}  // namespace longhaul
