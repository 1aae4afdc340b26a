#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/cluster/worker/part_messages.h"
#include "longhaul/graph/graph.h"
#include "longhaul/runtime/plan/plan.h"

namespace longhaul {

// A task's part of a run, compiled. Immutable once it is made. Whoever runs the plan keeps it.
struct RegisteredPart {
  Graph graph;  // the plan refers to it
  std::shared_ptr<Plan> plan;
  std::vector<std::string> fetches;
  PartBundles bundles;
  bool run_writes = false;     // some part of the run does
  bool changes_state = false;  // it takes part in the commit
};

// Imports and compiles the part for the session. The tensors are the values of its constants. Throws what
// import_graph_def() and PlanBuilder throw: nothing of what a message says is trusted.
std::shared_ptr<const RegisteredPart> register_part(const proto::RegisterGraphRequest& request,
                                                    const std::vector<Tensor>& constants,
                                                    const std::shared_ptr<SessionState>& session);

}  // namespace longhaul
