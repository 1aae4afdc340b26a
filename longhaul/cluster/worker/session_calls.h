#pragma once

#include <functional>
#include <memory>
#include <string>

#include "longhaul/cluster/worker/worker_state.h"

namespace longhaul {

// Answers GetStatus, Watch, WaitForChange, WaitForStop, EndTraining, RegisterGraph, DeregisterGraph and Reset.
void serve_sessions(const std::shared_ptr<WorkerState>& worker);
// Answers GetStatus, with which each master begins: comes last, when all else is served.
void serve_status(const std::shared_ptr<WorkerState>& worker);

// The session has ended: its steps are aborted, those that are prepared are in doubt, its doors are opened, its
// snapshots dropped. Variables stay, unless it has its own.
void end_session(WorkerState& worker, const std::string& session, const std::string& why);
// The same of one of its steps.
void lose_step(WorkerState& worker, StepLife& life, const std::string& why);
// The same of the whole task; steps in doubt are aborted, because their variables end, too.
void end_all_sessions(WorkerState& worker, const std::string& why);

// Runs `body` on a part thread; what it throws is the reply. Throws what JobThreads::start() throws.
void hand_over(const std::shared_ptr<WorkerState>& worker, std::shared_ptr<IncomingCall> call,
               std::function<void(IncomingCall& call)> body);

}  // namespace longhaul
