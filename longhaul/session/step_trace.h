#pragma once

#include <string>
#include <unordered_map>
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

// By operation: the full names of the devices on which some of a run's operations were placed.
using DevicesOfOperations = std::unordered_map<Operation, std::string, OperationHash>;

// The operations of a run on one thread, in order.
struct StepTrace {
  double wall_time = 0;  // of its start: seconds since 1970
  std::vector<TracedOperation> operations;
  // Those that are not on the device that they ask for, or that the host is where they ask for none.
  DevicesOfOperations devices;
};

// A session's metadata of a finished run, made on the run's thread: as much as the request's options ask for.
proto::RunMetadata describe_run(const Graph& graph, const Session::Request& request, const StepTrace& trace);

// ---- Of a run on several tasks ----

// What a task sends of its part's statistics at most, in bytes.
inline constexpr size_t kMostTraceBytes = size_t{16} << 20;

// The statistics of a part that this thread has run for `task`, "/job:ps/replica:0/task:1", serialized. Of a part with
// more than `most` bytes, the last operations are left out, and the log says how many.
std::string part_trace(const StepTrace& trace, const std::string& task, size_t most = kMostTraceBytes);

// Adds what part_trace() has returned on another task, and nothing in it is trusted: its devices become those of
// `task`. A warning in place of an error if it is damaged or too large, as the run has succeeded.
void add_part_trace(const std::string& task, const std::string& part, proto::StepStats* all);

}  // namespace longhaul
