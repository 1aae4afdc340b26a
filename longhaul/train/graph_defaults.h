#pragma once

#include <memory>

#include "longhaul/train/supervisor_options.h"

namespace longhaul {

// What a Supervisor uses of a graph. Invalid and empty where something is switched off or not there.
struct GraphDefaults {
  Output ready_op;
  Output ready_for_local_init_op;
  OpList init_op;
  OpList local_init_op;
  std::shared_ptr<Saver> saver;  // the caller's own, or one that was made
  Output summary_op;
  Output global_step;
};

// Takes from the options what they say, from the graph's collections what they leave open, and adds to the graph what
// is not there either (SupervisorOptions). InvalidArgumentError, FailedPreconditionError: the graph does not allow it.
GraphDefaults resolve_defaults(Graph& graph, const SupervisorOptions& options);

// The name of a step counter for people: of "global_step/read" it is "global_step".
std::string step_name(const Output& global_step);

}  // namespace longhaul
