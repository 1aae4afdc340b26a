#pragma once

#include <memory>

#include "longhaul/base/cancellation.h"
#include "longhaul/graph/operation.h"
#include "longhaul/host/queues/random_stream.h"
#include "longhaul/io/file.h"
#include "longhaul/runtime/state/step_gate.h"
#include "longhaul/runtime/state/variable_store.h"

namespace longhaul {

// The state that sessions on the same server share, and that outlives each of them. Any thread.
struct ServerState {
  explicit ServerState(std::optional<uint64_t> snapshot_memory = std::nullopt) : variables(snapshot_memory) {}

  VariableStore variables;
  StepGate gate;
  ResourceMap host_resources;  // queues, tables, readers, random streams
};

// The resources that the operations of one session use. Any thread.
class SessionResources {
 public:
  explicit SessionResources(int cpu_devices = 1, FileSystem& files = FileSystem::real(),
                            std::shared_ptr<ServerState> server = std::make_shared<ServerState>())
      : cpu_devices_(cpu_devices), files_(files), server_(std::move(server)) {}

  VariableStore& variables() { return server_->variables; }
  StepGate& gate() { return server_->gate; }
  FileSystem& files() { return files_; }
  ResourceMap& host_resources() { return server_->host_resources; }
  Cancellation& cancellation() { return cancellation_; }  // of all runs of the session

  // InvalidArgumentError: the operation is pinned to a device that this session does not have.
  void check_device(const Operation& op) const;

  std::shared_ptr<RandomStream> random_stream(const Operation& op) {
    return longhaul::random_stream(op, host_resources());
  }

 private:
  const int cpu_devices_;
  FileSystem& files_;
  const std::shared_ptr<ServerState> server_;
  Cancellation cancellation_;
};

}  // namespace longhaul
