#pragma once

#include <functional>

#include "longhaul/train/coordination/restarts.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {

struct TrainLoopOptions {
  ManagedSessionOptions session;
  RestartOptions restart;
};

// Calls `train_step` in a managed session of the supervisor, again and again until somebody requests a stop. When the
// session is lost (is_lost_session()) it waits, makes another one, which recovers from the last checkpoint, and goes
// on; a stop that is requested during the wait ends the loop. One that is requested between the loss and the wait,
// while the lost session's threads end and it is closed, cannot be told from that session's own and may be forgotten:
// who must not be overheard asks again, as StopSignals does.
//
//   basic_train_loop(sv, [&](Session& session) { session.run(train_op); });
//
// Times are measured by the supervisor's clock. Throws what managed_session() does: any other error, the error of the
// last session when max_restarts have not helped, and the error of a session that was lost after a stop was requested.
void basic_train_loop(Supervisor& supervisor, const std::function<void(Session&)>& train_step,
                      const TrainLoopOptions& options = {});

}  // namespace longhaul
