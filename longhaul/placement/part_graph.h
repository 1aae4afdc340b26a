#pragma once

#include <string>
#include <utility>
#include <vector>

#include "longhaul/placement/placer.h"
#include "longhaul/placement/run_split.h"
#include "longhaul/proto/graph.pb.h"
#include "longhaul/session/session.h"
#include "longhaul/tensor/tensor.h"

namespace longhaul {

// A task's part of a run, as it is sent to the task.
//
// The nodes are those of the session's graph, with the same names, in the order in which they run; each says whether it
// follows a write of the run (kAfterWriteAttr). In place of what other tasks compute there are nodes that receive it,
// and in place of what is fed, placeholders:
//
//   x/_send_3 = _Send(x:0)     peer = "/job:worker/replica:0/task:0", bundle = 0, slot = 1, T = DT_FLOAT
//   x/_recv_3 = _Recv()        on that worker; peer = "/job:ps/replica:0/task:0", the rest is the same; shape
//   x/_send_4 = _SendControl() peer, bundle: a message without values, for a control edge
//   x/_recv_4 = _RecvControl()
//
// A report on variables of several tasks is `_JoinReports` on its own task, of the reports that each task makes of its
// variables ("report/_part_1").
//
// `peer` is the other task; `bundle` counts the messages of the run, over all tasks, from 0 on; `slot` counts the
// values of a message. A message leaves with its last value, and no task waits for two parts of one.
struct RunPart {
  struct Named {
    int index = 0;     // of the request's feeds or fetches
    std::string name;  // of the tensor in this part: "x:0"
    bool operator==(const Named&) const = default;
  };
  struct Message {
    int bundle = 0;
    std::string peer;
    int values = 0;  // 0: without values
    bool operator==(const Message&) const = default;
  };

  std::string task;
  proto::GraphDef graph;
  // The values of constants of more than kLargestInnerConstant bytes, by name; their nodes have none
  // (ImportOptions::constants).
  std::vector<std::pair<std::string, Tensor>> constants;
  std::vector<Named> feeds, fetches;
  std::vector<std::string> targets;  // to be run, besides the fetches; these need all other operations
  std::vector<Message> sends, receives;
  bool writes = false;      // variables: the task takes part in the commit
  bool run_writes = false;  // some task does: random numbers are those of a training step
  uint64_t graph_seed = 0;
};

inline constexpr size_t kLargestInnerConstant = size_t{64} << 10;

struct DividedRun {
  std::vector<RunPart> parts;  // of the tasks that have something to do
  // What is fetched as it was fed: (index of the fetch, index of the feed). Nobody computes it.
  std::vector<std::pair<int, int>> fetched_feeds;
};

// `placement` is of the run's operations. Throws what SharedOrder throws.
DividedRun divide_run(const Session::Request& request, const RunOrder& run, const Placement& placement);

}  // namespace longhaul
