#pragma once

#include <span>
#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/session/session.h"
#include "longhaul/session/step_reading.h"

namespace longhaul {

// Remembers the newest global step among the values that the runs of a session have fetched: that of the run which
// began last, since a restore sets the step back. Any thread.
class NewestStep {
 public:
  // What a run has brought that began at that time. The global step is that of the graph's collection; a value that is
  // undefined, or no scalar int64, is none.
  void note(const Graph& graph, const std::vector<Fetch::Target>& fetches, std::span<const Tensor> values,
            Seconds began) EXCLUDES(mutex_);

  std::optional<ReadStep> read(Seconds now) const EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::optional<int64_t> step_ GUARDED_BY(mutex_);
  Seconds began_ GUARDED_BY(mutex_){0};
};

}  // namespace longhaul
