#pragma once

#include <functional>

#include "longhaul/train/coordination/restarts.h"
#include "longhaul/train/supervisor/supervisor.h"

namespace longhaul {

struct TrainLoopOptions {
  ManagedSessionOptions session{};
  RestartOptions restart{};
};

// Calls `train_step` in a managed session of the supervisor, over and over until a stop is requested. If the session is
// lost (is_lost_session()), it waits, makes a new session, which recovers from the last checkpoint, and continues. A
// stop requested during the wait ends the loop. A stop requested earlier, after the loss but while the lost session is
// still being closed, cannot be told from that session's own stop and may be lost. A caller whose request must not be
// lost therefore repeats it, or uses StopSignals.
//
//   basic_train_loop(sv, [&](Session& session) { session.run(train_op); });
//
// Times are measured by the supervisor's clock. Like managed_session(), throws any error that does not mean a lost
// session. Also throws the last session's error once max_restarts are used up, and the error of a session that was lost
// after a stop was requested. One that is lost while a preemption ends the training is logged instead: exit_status()
// has the scheduler start the program again, which continues from the newest checkpoint.
void basic_train_loop(Supervisor& supervisor, const std::function<void(Session&)>& train_step,
                      const TrainLoopOptions& options = {});

}  // namespace longhaul
