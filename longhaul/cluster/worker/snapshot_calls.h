#pragma once

#include <memory>

#include "longhaul/cluster/worker/worker_state.h"

namespace longhaul {

// Answers Freeze, Take and Open: the task's part of a snapshot of several tasks.
void serve_snapshots(const std::shared_ptr<WorkerState>& worker);

}  // namespace longhaul
