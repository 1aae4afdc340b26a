#pragma once

#include <vector>

#include "longhaul/base/mutex.h"
#include "longhaul/proto/config.pb.h"
#include "longhaul/session/session.h"

namespace longhaul {

// One operation's part in a traced run. Times count from the start of the run.
struct TracedOperation {
  struct Result {
    int slot;  // index of the output
    DType dtype;
    Shape shape;
  };
  Operation op;
  Seconds start{0}, end{0};
  std::vector<Result> results;
};

// The operations of a run on one thread, in order.
struct StepTrace {
  double wall_time = 0;  // of its start: seconds since 1970
  std::vector<TracedOperation> operations;
};

// A session's metadata of a finished run, made on the run's thread: as much as the request's options ask for.
proto::RunMetadata describe_run(const Graph& graph, const Session::Request& request, const StepTrace& trace);

}  // namespace longhaul
