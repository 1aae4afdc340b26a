#pragma once

#include <memory>
#include <string>
#include <vector>

#include "longhaul/cluster/worker/worker_state.h"

namespace longhaul {

// A part of a step to be run.
struct PartJob {
  std::shared_ptr<WorkerState> worker;
  std::shared_ptr<WorkerSession> session;
  std::shared_ptr<const RegisteredPart> part;
  std::shared_ptr<StepLife> life;
  std::vector<Tensor> feeds;
  std::string snapshot;  // past whose shut gate the variables are read; empty: none
  bool is_traced = false;
};

// Runs it on this thread, from its receives to the end of its sends; with a joint commit it waits in between for the
// verdict, and in doubt for what the other participants know. The outcome, an error too, is the life's. Each wait has
// the step's deadline, a bound of WorkerOptions, or that of a shut gate.
void run_part(const PartJob& job);

// The deadline for plans, whose clock is the machine's. 0: none.
Seconds plan_deadline(Seconds deadline, const Clock& clock);

}  // namespace longhaul
