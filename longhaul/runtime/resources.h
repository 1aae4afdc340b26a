#pragma once

#include "longhaul/base/cancellation.h"
#include "longhaul/graph/operation.h"
#include "longhaul/host/random_stream.h"
#include "longhaul/io/file.h"
#include "longhaul/runtime/step_gate.h"
#include "longhaul/runtime/variable_store.h"

namespace longhaul {

// What the operations of one session share. Any thread.
class SessionResources {
 public:
  explicit SessionResources(int cpu_devices = 1, FileSystem& files = FileSystem::real(),
                            std::optional<uint64_t> snapshot_memory = std::nullopt)
      : cpu_devices_(cpu_devices), files_(files), variables_(snapshot_memory) {}

  VariableStore& variables() { return variables_; }
  StepGate& gate() { return gate_; }
  FileSystem& files() { return files_; }
  ResourceMap& host_resources() { return host_resources_; }  // queues, tables, readers, random streams
  Cancellation& cancellation() { return cancellation_; }     // of all runs of the session

  // InvalidArgumentError: the operation is pinned to a device that this session does not have.
  void check_device(const Operation& op) const;

  std::shared_ptr<RandomStream> random_stream(const Operation& op) {
    return longhaul::random_stream(op, host_resources_);
  }

 private:
  const int cpu_devices_;
  FileSystem& files_;
  VariableStore variables_;
  StepGate gate_;
  ResourceMap host_resources_;
  Cancellation cancellation_;
};

}  // namespace longhaul
