#include "longhaul/cluster/worker/step_calls.h"

#include <fmt/format.h>

#include "longhaul/base/error.h"
#include "longhaul/base/excerpt.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/cluster/worker/part_job.h"
#include "longhaul/cluster/worker/part_place.h"
#include "longhaul/cluster/worker/session_calls.h"

namespace longhaul {
namespace {

using SharedCall = std::shared_ptr<IncomingCall>;

template <typename Request>
Request request_in(const IncomingCall& call) {
  return header_of<Request>(call.request(), fmt::format("{} from {}", call.method(), call.caller().task));
}

// ---- RunPart ----

void check_step(int64_t step, const IncomingCall& call) {
  if (step > 0) return;
  throw InvalidArgumentError(fmt::format("step {} from {}: steps are above 0", step, excerpt(call.caller().task)));
}

StepLife::Call call_of(const proto::RunPartRequest& request, const IncomingCall& call,
                       std::shared_ptr<PartPlace> place) {
  check_step(request.step(), call);
  return {.step = request.step(),
          .master = call.caller(),
          .session = request.session(),
          .joint = request.joint_commit(),
          .deadline = call.deadline(),
          .participants = {request.participant().begin(), request.participant().end()},
          .place = std::move(place)};
}

void reply_to_run(IncomingCall& call, const std::string& ended_by, const StepOutcome& outcome) {
  if (outcome.error != nullptr) return call.fail(outcome.error);
  proto::RunPartReply reply;
  reply.set_training_ended_by(ended_by);
  reply.set_is_prepared(!outcome.is_over);
  call.reply(to_message(reply, outcome.is_over ? outcome.results : std::vector<Tensor>{}));
}

void clean_up(WorkerState& worker, int64_t step, const IncomingCall::Caller& master) {
  const std::shared_ptr<StepLife> life = worker.steps.bury(step);
  if (life == nullptr) return worker.exchange->end(step);
  if (life->call().master.incarnation != master.incarnation) return;
  if (!life->is_over()) {
    life->abort(std::make_exception_ptr(ConsequenceError(
        Code::kAborted, fmt::format("step {} was given up by its master on task {}", step, master.task))));
  }
  worker.steps.forget_when_over(step);
}

// The session may end while the step begins: then nobody else tells the step.
void start_part(PartJob job) {
  const std::shared_ptr<WorkerState> worker = job.worker;
  const std::shared_ptr<WorkerSession> session = job.session;
  const std::shared_ptr<StepLife> life = job.life;
  try {
    worker->threads.start([job = std::move(job)] { run_part(job); });
  } catch (...) {
    life->fail(std::current_exception());
    worker->steps.keep(life);
  }
  if (!worker->sessions.has_ended(*session)) return;
  lose_step(*worker, *life, fmt::format("the session of step {} has ended", life->call().step));
}

void run_part_call(const std::shared_ptr<WorkerState>& worker, const SharedCall& call) {
  const auto request = request_in<proto::RunPartRequest>(*call);
  for (const int64_t step : request.cleanup()) clean_up(*worker, step, call->caller());
  const std::shared_ptr<WorkerSession> session = worker->sessions.find(request.session(), call->caller());
  const std::shared_ptr<const RegisteredPart> part = session->part(request.graph_handle());
  const StepTable::Begun begun =
      worker->steps.begin(call_of(request, *call, std::make_shared<PartPlace>(part, worker->clock())));
  const std::string ended_by = worker->ended_training.by(worker->clock().now());
  begun.life->when_run([call, ended_by](const StepOutcome& outcome) { reply_to_run(*call, ended_by, outcome); });
  if (begun.is_new) {
    start_part({worker, session, part, begun.life, call->take_request().tensors, request.snapshot(), request.trace()});
  }
}

// ---- Commit ----

AbortedError not_committed(int64_t step, const std::string& task, proto::StepState state) {
  return AbortedError(state == proto::STEP_UNKNOWN
                          ? fmt::format("task {} has never heard of step {}, or has long forgotten it", task, step)
                          : fmt::format("step {} was aborted on task {}", step, task));
}

void reply_to_commit(IncomingCall& call, const std::string& task, int64_t step, const StepOutcome& outcome) {
  if (outcome.state != proto::STEP_COMMITTED) {
    const std::string text = not_committed(step, task, proto::STEP_ABORTED).what();
    return call.fail(std::make_exception_ptr(AbortedError(fmt::format("{}: {}", text, message_of(outcome.error)))));
  }
  if (outcome.is_over && outcome.error != nullptr) return call.fail(outcome.error);
  proto::CommitReply reply;
  reply.set_state(outcome.state);
  call.reply(to_message(reply, outcome.results));
}

// Of a step that is not there.
void commit_remembered(const WorkerState& worker, IncomingCall& call, int64_t step) {
  const proto::StepState state = worker.steps.remembered(step);
  if (state != proto::STEP_COMMITTED) throw not_committed(step, worker.transport.task(), state);
  proto::CommitReply reply;
  reply.set_state(state);
  call.reply(to_message(reply));
}

void commit_call(const std::shared_ptr<WorkerState>& worker, const SharedCall& call) {
  const auto request = request_in<proto::CommitRequest>(*call);
  const int64_t step = request.step();
  const auto reply = [call, step, task = worker->transport.task()](const StepOutcome& outcome) {
    reply_to_commit(*call, task, step, outcome);
  };
  const std::string& snapshot = request.snapshot();
  const auto life = snapshot.empty() ? worker->steps.find(step, call->caller()) : worker->steps.find(step);
  if (life == nullptr) return commit_remembered(*worker, *call, step);
  if (snapshot.empty()) return life->commit(reply);
  life->commit_as_others(snapshot, reply);
}

// ---- Abort, Cleanup, Ask, LookAtStep ----

std::exception_ptr cause_of(const proto::AbortRequest& request) {
  const std::exception_ptr cause = from_error_body(request.error());
  if (cause != nullptr) return std::make_exception_ptr(ConsequenceError(cause));
  return std::make_exception_ptr(
      ConsequenceError(Code::kAborted, fmt::format("step {} was aborted by its master", request.step())));
}

void abort_call(const std::shared_ptr<WorkerState>& worker, const SharedCall& call) {
  const auto request = request_in<proto::AbortRequest>(*call);
  const int64_t step = request.step();
  check_step(step, *call);  // it is remembered
  proto::AbortReply reply;
  worker->steps.bury(step);
  if (const auto life = worker->steps.find(step, call->caller())) {
    reply.set_state(life->abort(cause_of(request)));
  } else {
    worker->exchange->end(step);
    reply.set_state(worker->steps.remembered(step));
  }
  call->reply(to_message(reply));
}

void cleanup_call(const std::shared_ptr<WorkerState>& worker, const SharedCall& call) {
  const auto request = request_in<proto::CleanupRequest>(*call);
  for (const int64_t step : request.step()) clean_up(*worker, step, call->caller());
  call->reply(to_message(proto::CleanupReply()));
}

StepOutcome asked(WorkerState& worker, const proto::AskRequest& request) {
  const auto life = request.resolve() ? worker.steps.bury(request.step()) : worker.steps.find(request.step());
  if (life != nullptr) return life->ask(request.resolve());
  if (request.resolve()) worker.exchange->end(request.step());
  return {.state = worker.steps.remembered(request.step()), .is_over = true, .error = nullptr, .results = {}};
}

void ask_call(const std::shared_ptr<WorkerState>& worker, const SharedCall& call) {
  const auto request = request_in<proto::AskRequest>(*call);
  check_step(request.step(), *call);
  const StepOutcome outcome = asked(*worker, request);
  proto::AskReply reply;
  reply.set_state(outcome.state);
  if (outcome.error != nullptr) *reply.mutable_error() = to_error_body(outcome.error);
  call->reply(to_message(reply));
}

proto::LookAtStepReply looked_at(const WorkerState& worker, int64_t step, const IncomingCall::Caller& master) {
  proto::LookAtStepReply reply;
  const auto life = worker.steps.find(step, master);
  if (life == nullptr) {
    reply.set_state(worker.steps.remembered(step));
    reply.set_is_over(reply.state() != proto::STEP_UNKNOWN);
    return reply;
  }
  if (life->call().place != nullptr) reply = life->call().place->look();
  reply.set_state(life->state());
  reply.set_is_over(life->is_over());
  return reply;
}

void look_at_step_call(const std::shared_ptr<WorkerState>& worker, const SharedCall& call) {
  const auto request = request_in<proto::LookAtStepRequest>(*call);
  call->reply(to_message(looked_at(*worker, request.step(), call->caller())));
}

}  // namespace

void serve_steps(const std::shared_ptr<WorkerState>& worker) {
  const auto serve = [&](const char* method, auto* handler) {
    worker->transport.serve(method, [worker, handler](SharedCall call) { handler(worker, call); });
  };
  serve(methods::kRunPart, run_part_call);
  serve(methods::kCommit, commit_call);
  serve(methods::kAbort, abort_call);
  serve(methods::kCleanup, cleanup_call);
  serve(methods::kAsk, ask_call);
  serve(methods::kLookAtStep, look_at_step_call);
}

}  // namespace longhaul
