#pragma once

#include <memory>

#include "longhaul/cluster/transport/transport.h"
#include "longhaul/cluster/worker/step_life.h"

namespace longhaul {

// Asks the other participants of a step in doubt what became of it, and does what they did:
//
//   1. Whoever is asked takes no Commit of the step's master any more, unless it has committed already; if it has not
//      prepared the step, it aborts it. So nobody can commit behind the back of those who ask.
//   2. One has committed: commit (StepLife::resolve). One has aborted: abort. All have only prepared it: abort; the
//      others ask, too, and come to the same end.
//   3. One whose process is another, or is being stopped, counts as prepared: what it may have written is gone. One
//      that does not answer is asked again, until `until`.
//
// Returns at once; the answers come on threads of the transport, which outlives them.
void ask_participants(std::shared_ptr<StepLife> life, Transport& transport, Seconds until);

}  // namespace longhaul
