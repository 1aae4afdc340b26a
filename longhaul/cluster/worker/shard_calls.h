#pragma once

#include <memory>

#include "longhaul/cluster/worker/worker_state.h"

namespace longhaul {

// Answers DescribeTaken, ReadTaken, WriteShard and LookAtFile: the task's part of a checkpoint. Its files are those of
// the task's resources. A file whose snapshot or session ends while it is written is not completed.
void serve_shards(const std::shared_ptr<WorkerState>& worker);

}  // namespace longhaul
