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

// What a session tells of a run after it, on the thread that it ran on: as much as the request's options ask for.
proto::RunMetadata describe_run(const Graph& graph, const Session::Request& request, const StepTrace& trace);

}  // namespace longhaul
