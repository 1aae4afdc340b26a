#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "longhaul/base/mutex.h"
#include "longhaul/host/accumulators/accumulator.h"

namespace longhaul {

// Counts the gradients of each worker, and says in the log whose come too late. A run with a dropped gradient succeeds,
// so a worker that is too slow for every step would otherwise train for nothing unseen. Any thread may call any method.
class WorkerGradients final : public Resource {
 public:
  struct Counts {
    int64_t counted = 0, dropped = 0;
  };

  // Counts a gradient, computed in step `local_step`. Logs when a worker's dropped ones are 2, 4, 8, 16, ...: the first
  // is the one that each worker loses after a start (SyncReplicasOptimizer).
  void add(const std::string& worker, int64_t local_step, const Accumulator::Applied& applied) EXCLUDES(mutex_);
  // Zeros for a worker that has had none.
  Counts of(const std::string& worker) const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, Counts> workers_ GUARDED_BY(mutex_);
};

// Those of a session, or of the server that it is on.
std::shared_ptr<WorkerGradients> worker_gradients(ResourceMap& resources);

}  // namespace longhaul
