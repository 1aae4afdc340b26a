#pragma once

#include <functional>

#include "longhaul/train/coordination/restarts.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {

struct TrainLoopOptions {
  ManagedSessionOptions session{};
  RestartOptions restart{};
};

// Calls `train_step` in a managed session of the supervisor, over and over until a stop is requested. When the session
// is lost (is_lost_session()) it waits, makes another one, which recovers from the last checkpoint, and continues; a
// stop requested during the wait ends the loop. A stop requested between the loss and the wait, while the lost
// session's threads end and it is closed, cannot be told apart from that session's own and may be forgotten: a caller
// whose request must not be lost repeats it, as StopSignals does.
//
//   basic_train_loop(sv, [&](Session& session) { session.run(train_op); });
//
// Times are measured by the supervisor's clock. Throws as managed_session() does: any other error, the error of the
// last session once max_restarts are used up, and the error of a session that was lost after a stop was requested.
void basic_train_loop(Supervisor& supervisor, const std::function<void(Session&)>& train_step,
                      const TrainLoopOptions& options = {});

}  // namespace longhaul
