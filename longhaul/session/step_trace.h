#pragma once

#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/session.h"

namespace longhaul {

// What one operation did in a traced run. Times count from the run's beginning.
struct TracedOperation {
  struct Result {
    int slot;  // which output
    DType dtype;
    Shape shape;
  };
  Operation op;
  Seconds start{0}, end{0};
  std::vector<Result> results;
};

// What a run on one thread did, in order.
struct StepTrace {
  double wall_time = 0;  // of its beginning: seconds since 1970
  std::vector<TracedOperation> operations;
};

// For sessions: whether the run has to be traced, and what its RunMetadata becomes after it, on the thread that it ran
// on. The request's operations are of `graph`.
bool wants_trace(const RunOptions& options, const proto::RunMetadata* metadata);
proto::RunMetadata describe_run(const Graph& graph, const Session::Request& request, const StepTrace& trace);

}  // namespace longhaul
