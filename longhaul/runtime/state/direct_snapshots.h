#pragma once

#include "longhaul/runtime/memory/variable_memory.h"
#include "longhaul/runtime/state/snapshot_limit.h"
#include "longhaul/runtime/state/step_gate.h"
#include "longhaul/session/snapshots.h"

namespace longhaul {

// Snapshots of the variables of a session in this process.
class DirectSnapshots : public Snapshots {
 public:
  DirectSnapshots(VariableMemory memory, std::shared_ptr<SnapshotLimit> limit);
  ~DirectSnapshots() override;

  std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) override;
  Seconds last_wait() const override { return StepGate::last_wait(); }
  void prepare(const std::function<bool()>& stop) override { memory_.prepare(stop); }
  uint64_t bytes_free() const override { return memory_.bytes_free(); }

 private:
  const VariableMemory memory_;
  const std::shared_ptr<SnapshotLimit> limit_;
};

}  // namespace longhaul
