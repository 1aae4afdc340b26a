#pragma once

#include <memory>

#include "longhaul/cluster/worker/worker_state.h"

namespace longhaul {

// Answers RunPart, Commit, Abort, Cleanup and Ask: each may be repeated, come late, or before what it is about.
void serve_steps(const std::shared_ptr<WorkerState>& worker);

}  // namespace longhaul
