#include "longhaul/cluster/worker/session_calls.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/methods.h"

namespace longhaul {
namespace {

template <typename Request>
Request session_request(const IncomingCall& call) {
  return header_of<Request>(call.request(), fmt::format("{} from {}", call.method(), call.caller().task));
}

void let_go(WorkerState& worker, WorkerSession& session, const std::string& why) {
  for (const auto& life : worker.steps.of_session(session.id())) lose_step(worker, *life, why);
  for (const std::string& snapshot : session.snapshots()) {
    worker.resources->gate().open(snapshot);
    session.drop_taken(snapshot);
  }
  session.state()->cancellation().cancel(why);
}

void get_status(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  proto::GetStatusReply reply = worker->options.status;
  for (const DeviceAttributes& device : worker->resources->devices()) {
    proto::DeviceAttributes& attributes = *reply.add_devices();
    attributes.set_name(device.name);
    attributes.set_device_type(device.device_type);
    attributes.set_memory_limit(device.memory_limit);
    attributes.set_incarnation(worker->transport.incarnation());
    attributes.set_physical_device_desc(device.physical_device_desc);
  }
  reply.set_task(worker->transport.task());
  call->reply(to_message(reply));
}

void wait_for_change(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = session_request<proto::WaitForChangeRequest>(*call);
  worker->changes->add(call, request.generation(), worker->threads);
}

void wait_for_stop(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  worker->stop_calls->add(call);
}

void end_training(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  worker->ended_training.note(call->caller().task, worker->clock().now());
  if (worker->options.training_ended) worker->options.training_ended(call->caller().task);
  call->reply(to_message(proto::EndTrainingReply()));
}

void register_graph(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  hand_over(worker, call, [worker](IncomingCall& registration) {
    const auto request = session_request<proto::RegisterGraphRequest>(registration);
    const auto session =
        worker->sessions.find_soon(request.session(), registration.caller(), worker->options.late_watch);
    std::shared_ptr<const RegisteredPart> part = session->find(request.graph_handle());
    if (part == nullptr) {
      part = session->add(request.graph_handle(),
                          register_part(request, registration.request().tensors, session->state()));
    }
    proto::RegisterGraphReply reply;
    reply.set_changes_state(part->changes_state);
    registration.reply(to_message(reply));
  });
}

void deregister_graph(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  const auto request = session_request<proto::DeregisterGraphRequest>(*call);
  const auto session = worker->sessions.find(request.session(), call->caller());
  for (const std::string& handle : request.graph_handle()) session->remove(handle);
  call->reply(to_message(proto::DeregisterGraphReply()));
}

void reset(const std::shared_ptr<WorkerState>& worker, const std::shared_ptr<IncomingCall>& call) {
  hand_over(worker, call, [worker](IncomingCall& asked) {
    const auto request = session_request<proto::ResetRequest>(asked);
    const std::vector<std::string> containers(request.container().begin(), request.container().end());
    log_info("task {} is reset by {}: containers {}", worker->transport.task(), excerpt(asked.caller().task),
             containers.empty() ? "all" : excerpt(first_names(containers)));
    worker->resources->reset(containers);
    for (const std::string& session : worker->sessions.ids()) {
      worker->watched->end(session, "containers of the task were reset (Session::reset); make a new session");
      end_session(*worker, session, "containers of the task were reset (Session::reset)");
    }
    asked.reply(to_message(proto::ResetReply()));
  });
}

void serve_watch(const std::shared_ptr<WorkerState>& worker) {
  Watched::Come come = [worker](const IncomingCall::Caller& caller, const proto::WatchRequest& request) {
    if (request.session().empty()) return;
    worker->ended_training.begins(caller.task);
    worker->sessions.open(request.session(), caller, request.isolated());
  };
  Watched::Gone gone = [worker](const IncomingCall::Caller& caller, const std::string& session) {
    if (session.empty()) return;
    end_session(*worker, session, fmt::format("the master on task {} has died or closed its session", caller.task));
  };
  worker->watched = std::make_unique<Watched>(worker->transport, std::move(gone), std::move(come));
}

}  // namespace

// What was committed here is told to snapshots for as long as another participant may be in doubt about it.
void lose_step(WorkerState& worker, StepLife& life, const std::string& why) {
  life.lose_master(why);
  const WorkerOptions& options = worker.options;
  worker.steps.forget_when_over(life.call().step, worker.clock().now() + options.undecided + options.doubt);
}

void end_session(WorkerState& worker, const std::string& id, const std::string& why) {
  if (const auto session = worker.sessions.end(id)) let_go(worker, *session, why);
}

void end_all_sessions(WorkerState& worker, const std::string& why) {
  const auto sessions = worker.sessions.stop();
  for (const auto& life : worker.steps.all()) life->abort(std::make_exception_ptr(UnavailableError(why)));
  for (const auto& session : sessions) {
    worker.watched->end(session->id(), why);
    let_go(worker, *session, why);
  }
  worker.watched->end("", why);
}

void hand_over(const std::shared_ptr<WorkerState>& worker, std::shared_ptr<IncomingCall> call,
               std::function<void(IncomingCall&)> body) {
  worker->threads.start([call = std::move(call), body = std::move(body)] {
    try {
      body(*call);
    } catch (...) {
      call->fail(std::current_exception());
    }
  });
}

void serve_sessions(const std::shared_ptr<WorkerState>& worker) {
  const auto serve = [&](const char* method, auto* handler) {
    worker->transport.serve(method, [worker, handler](std::shared_ptr<IncomingCall> call) { handler(worker, call); });
  };
  serve(methods::kWaitForChange, wait_for_change);
  serve(methods::kWaitForStop, wait_for_stop);
  serve(methods::kEndTraining, end_training);
  serve(methods::kRegisterGraph, register_graph);
  serve(methods::kDeregisterGraph, deregister_graph);
  serve(methods::kReset, reset);
  serve_watch(worker);
}

void serve_status(const std::shared_ptr<WorkerState>& worker) {
  worker->transport.serve(methods::kGetStatus,
                          [worker](std::shared_ptr<IncomingCall> call) { get_status(worker, call); });
}

}  // namespace longhaul
