#include "longhaul/runtime/state/direct_snapshots.h"

namespace longhaul {

DirectSnapshots::DirectSnapshots(VariableMemory memory, std::shared_ptr<SnapshotLimit> limit)
    : memory_(std::move(memory)), limit_(std::move(limit)) {
  memory_.add_keeper();
}

DirectSnapshots::~DirectSnapshots() {
  memory_.remove_keeper();
}

std::vector<Tensor> DirectSnapshots::take(Session& session, const std::vector<Fetch>& fetches) {
  std::shared_ptr<SnapshotLimit::Snapshot> snapshot = limit_->begin();
  std::vector<Tensor> values = session.run(fetches, {}, {.snapshot = true});
  if (snapshot) SnapshotLimit::Snapshot::hold(std::move(snapshot), &values);
  return values;
}

}  // namespace longhaul
