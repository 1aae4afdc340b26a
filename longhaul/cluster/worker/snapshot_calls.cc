#include "longhaul/cluster/worker/snapshot_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/error.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/worker/part_job.h"
#include "longhaul/cluster/worker/session_calls.h"
#include "longhaul/runtime/plan/prepared.h"

namespace longhaul {
namespace {

template <typename Request>
Request snapshot_request(const IncomingCall& call) {
  return header_of<Request>(call.request(), fmt::format("{} from {}", call.method(), call.caller().task));
}

// What a master asks for, within what the task allows.
Seconds lease_of(double secs, Seconds most) {
  return secs > 0 ? std::min(Seconds{secs}, most) : most;
}

// ---- Freeze ----

AbortedError lease_ended(const std::string& snapshot) {
  return AbortedError(
      fmt::format("the snapshot {} of several tasks no longer keeps this one from making steps: its lease or its "
                  "session has ended, or it has been taken. Take another",
                  snapshot));
}

// A step whose commit has come is made now, since other tasks may have made it: its part may wait at the gate, or has
// written and not yet said so.
void complete_committed(WorkerState& worker, const std::string& snapshot) {
  const Seconds until = worker.clock().now() + worker.options.freeze;
  for (const auto& life : worker.steps.all()) {
    if (!life->call().joint || life->state() != proto::STEP_COMMITTED || life->has_written()) continue;
    life->commit_as_others(snapshot, [](const StepOutcome&) {});
    if (life->wait_for_writes(worker.clock(), until)) continue;
    throw DeadlineExceededError(
        fmt::format("the snapshot {} of several tasks timed out while it waited for step {} to finish its writes",
                    snapshot, life->call().step));
  }
}

proto::FreezeReply steps_of_several_tasks(StepTable& steps, Seconds now) {
  proto::FreezeReply reply;
  for (const int64_t step : steps.committed_orphans(now)) reply.add_committed(step);
  for (const auto& life : steps.all()) {
    if (!life->call().joint) continue;
    const proto::StepState state = life->state();
    if (life->has_written()) {
      reply.add_committed(life->call().step);
    } else if (state == proto::STEP_PREPARED || state == proto::STEP_COMMITTED) {
      reply.add_prepared(life->call().step);
    }
  }
  return reply;
}

// False: another snapshot has the gate. Renewed too late, it is another moment than that of the other tasks. And a call
// that comes late, or whose session or snapshot ends meanwhile, must not leave the gate shut, for nobody would open it.
bool shut_gate(WorkerState& worker, WorkerSession& session, const proto::FreezeRequest& request) {
  if (session.has_ended(request.snapshot())) throw lease_ended(request.snapshot());
  const bool is_new = session.add_snapshot(request.snapshot());
  StepGate& gate = worker.resources->gate();
  const Seconds most = worker.options.freeze;
  const StepGate::Door door = gate.shut(request.snapshot(), lease_of(request.lease_secs(), most), most,
                                        request.wait_secs() > 0 ? lease_of(request.wait_secs(), most) : Seconds{0});
  const bool has_ended = worker.sessions.has_ended(session) || session.has_ended(request.snapshot());
  if (door == StepGate::Door::kAnothers) {
    session.end_snapshot(request.snapshot());
    return false;
  }
  if ((is_new || door == StepGate::Door::kRenewed) && !has_ended) return true;
  gate.open(request.snapshot());
  throw lease_ended(request.snapshot());
}

void freeze(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = snapshot_request<proto::FreezeRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  hand_over(worker, call, [worker, session, request](IncomingCall& asked) {
    if (!shut_gate(*worker, *session, request)) {
      proto::FreezeReply reply;
      reply.set_is_anothers(true);
      return asked.reply(to_message(reply));
    }
    try {
      complete_committed(*worker, request.snapshot());
    } catch (...) {
      worker->resources->gate().open(request.snapshot());
      throw;
    }
    asked.reply(to_message(steps_of_several_tasks(worker->steps, worker->clock().now())));
  });
}

// ---- Take ----

// Reads the part's variables at the moment that the gate is shut for, which opens the gate.
std::vector<Tensor> take_values(WorkerState& worker, const WorkerSession& session, const RegisteredPart& part,
                                const std::string& snapshot, Seconds deadline) {
  Prepared prepared = Plan::prepare(part.plan, {},
                                    {.deadline = plan_deadline(deadline, worker.clock()),
                                     .cancellation = &session.state()->cancellation(),
                                     .door = snapshot});
  std::vector<Tensor> values;
  prepared.commit(&values);
  values.resize(part.fetches.size());
  return values;
}

TakenValues taken_values(WorkerState& worker, WorkerSession& session, const proto::TakeRequest& request,
                         Seconds deadline) {
  const Seconds lease = lease_of(request.lease_secs(), worker.options.taken);
  if (auto before = session.taken(request.snapshot(), lease)) return *std::move(before);
  const auto part = session.part(request.graph_handle());
  std::vector<Tensor> values = take_values(worker, session, *part, request.snapshot(), deadline);
  session.keep_taken(request.snapshot(), part, values, lease);
  session.end_snapshot(request.snapshot());
  return {part->fetches, std::move(values)};
}

proto::TakeReply reply_to_take(const TakenValues& taken, const std::string& global_step) {
  proto::TakeReply reply;
  for (size_t i = 0; i < taken.names.size() && !global_step.empty(); ++i) {
    if (taken.names[i] != global_step) continue;
    reply.set_has_global_step(true);
    reply.set_global_step(taken.values[i].item<int64_t>());
  }
  return reply;
}

void take(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = snapshot_request<proto::TakeRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  hand_over(worker, call, [worker, session, request](IncomingCall& asked) {
    const TakenValues taken = taken_values(*worker, *session, request, asked.deadline());
    asked.reply(to_message(reply_to_take(taken, request.global_step())));
  });
}

// ---- Open ----

void open_gate(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = snapshot_request<proto::OpenRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  session->end_snapshot(request.snapshot());
  worker->resources->gate().open(request.snapshot());
  session->drop_taken(request.snapshot());
  call->reply(to_message(proto::OpenReply()));
}

}  // namespace

void serve_snapshots(const std::shared_ptr<WorkerState>& worker) {
  const auto serve = [&](const char* method, auto* handler) {
    worker->transport.serve(method, [worker, handler](std::shared_ptr<IncomingCall> call) { handler(worker, call); });
  };
  serve(methods::kFreeze, freeze);
  serve(methods::kTake, take);
  serve(methods::kOpen, open_gate);
}

}  // namespace longhaul
