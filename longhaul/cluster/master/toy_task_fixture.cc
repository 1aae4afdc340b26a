#include "longhaul/cluster/master/toy_task_fixture.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {
namespace {

template <typename Request>
Request request_of(const std::shared_ptr<IncomingCall>& call) {
  return header_of<Request>(call->request(), call->method());
}

void reply_or_fail(std::vector<std::shared_ptr<IncomingCall>>& calls, const std::exception_ptr& error,
                   const Message& message) {
  for (const auto& call : std::exchange(calls, {})) {
    if (error != nullptr) {
      call->fail(error);
    } else {
      call->reply(message);
    }
  }
}

bool is_assignment(const proto::NodeDef& node) {
  return node.op().starts_with("Assign");
}

std::string node_of_tensor(const std::string& tensor) {
  return tensor.substr(0, tensor.find(':'));
}

}  // namespace

std::shared_ptr<ToyTask> ToyTask::start(SimulatedNetwork& network, const std::string& task) {
  auto toy = std::make_shared<ToyTask>(network, network.start(task));
  toy->serve();
  return toy;
}

void ToyTask::on(const std::string& method, void (ToyTask::*handler)(const Call&)) {
  transport_->serve(method, [weak = weak_from_this(), handler](const Call& call) {
    if (const auto task = weak.lock()) ((*task).*handler)(call);
  });
}

void ToyTask::serve() {
  on(methods::kGetStatus, &ToyTask::get_status);
  on(methods::kWatch, &ToyTask::watch);
  on(methods::kRegisterGraph, &ToyTask::register_graph);
  on(methods::kDeregisterGraph, &ToyTask::deregister_graph);
  on(methods::kRunPart, &ToyTask::run_part);
  on(methods::kCommit, &ToyTask::commit);
  on(methods::kAbort, &ToyTask::abort);
  on(methods::kAsk, &ToyTask::ask);
  on(methods::kLookAtStep, &ToyTask::look_at_step);
  on(methods::kFreeze, &ToyTask::freeze);
  on(methods::kTake, &ToyTask::take);
  on(methods::kOpen, &ToyTask::open);
  on(methods::kWaitForChange, &ToyTask::wait_for_change);
  on(methods::kReset, &ToyTask::reset);
}

// ---- Sessions and parts ----

void ToyTask::get_status(const Call& call) {
  proto::GetStatusReply reply;
  for (const std::string& type : device_types) {
    proto::DeviceAttributes* device = reply.add_devices();
    device->set_name(fmt::format("{}/device:{}:0", transport_->task(), type));
    device->set_device_type(type);
    device->set_incarnation(transport_->incarnation());
  }
  call->reply(to_message(reply));
}

void ToyTask::watch(const Call& call) {
  const std::string session = request_of<proto::WatchRequest>(call).session();
  if (!ended_.contains(session)) sessions_[session].watches.push_back(call);
  session_of(session);
  call->on_gone([weak = weak_from_this(), session] {
    if (const auto task = weak.lock()) task->end_session(session, "its master has gone");
  });
  for (const Call& early : std::exchange(early_, {})) register_graph(early);
}

ToyTask::ToySession& ToyTask::session_of(const std::string& session) {
  const auto found = sessions_.find(session);
  if (found != sessions_.end()) return found->second;
  throw AbortedError(fmt::format("Session handle is not found: {}. Possibly this worker (\"{}\") just restarted.",
                                 session, transport_->task()));
}

void ToyTask::end_session(const std::string& session, const std::string& why) {
  const auto found = sessions_.find(session);
  if (found == sessions_.end()) return;
  ended_.insert(session);
  proto::WatchReply reply;
  reply.set_why(why);
  const std::vector<Call> watches = std::move(found->second.watches);
  sessions_.erase(found);
  for (const Call& watch : watches) watch->reply(to_message(reply));
  for (auto& [number, step] : steps_) {
    if (step.request.session() != session || step.is_over) continue;
    if (step.state == proto::STEP_RUNNING) set_aborted(step, std::make_exception_ptr(AbortedError(why)));
    if (step.state == proto::STEP_PREPARED) ask_others(number);
  }
}

void ToyTask::register_graph(const Call& call) {
  auto request = request_of<proto::RegisterGraphRequest>(call);
  if (!sessions_.contains(request.session()) && !ended_.contains(request.session())) {
    early_.push_back(call);
    return;
  }
  proto::RegisterGraphReply reply;
  const auto& nodes = request.graph().node();
  reply.set_changes_state(std::any_of(nodes.begin(), nodes.end(), is_assignment));
  session_of(request.session()).parts[request.graph_handle()] = std::move(request);
  call->reply(to_message(reply));
}

void ToyTask::deregister_graph(const Call& call) {
  const auto request = request_of<proto::DeregisterGraphRequest>(call);
  for (const std::string& handle : request.graph_handle()) session_of(request.session()).parts.erase(handle);
  call->reply(to_message(proto::DeregisterGraphReply()));
}

size_t ToyTask::parts() const {
  size_t count = 0;
  for (const auto& [name, session] : sessions_) count += session.parts.size();
  return count;
}

// ---- Steps ----

size_t ToyTask::unfinished_steps() const {
  return static_cast<size_t>(
      std::count_if(steps_.begin(), steps_.end(), [](const auto& step) { return !step.second.is_over; }));
}

void ToyTask::run_part(const Call& call) {
  const auto request = request_of<proto::RunPartRequest>(call);
  ToySession& session = session_of(request.session());
  for (const int64_t over : request.cleanup()) {
    if (const auto found = steps_.find(over); found != steps_.end()) {
      if (!found->second.is_over) set_aborted(found->second, std::make_exception_ptr(AbortedError("cleaned up")));
      forgotten_[over] = found->second.state;
      steps_.erase(found);
    }
  }
  if (forgotten_.contains(request.step())) throw AbortedError("the step is over");
  const auto [place, is_new] = steps_.try_emplace(request.step());
  Step& step = place->second;
  step.runs.push_back(call);
  if (is_new) {
    step.request = request;
    step.part = session.parts.at(request.graph_handle());
    step.feeds = call->request().tensors;
    compute(request.step(), step);
  }
  answer(step);
}

void ToyTask::compute(int64_t number, Step& step) {
  if (fails != nullptr) return set_aborted(step, fails);
  if (hangs) return;
  const std::string& snapshot = step.request.snapshot();
  if (!snapshot.empty() && !doors_.contains(snapshot))
    return set_aborted(step, std::make_exception_ptr(AbortedError("the gate is not shut for " + snapshot)));
  read(step);
  if (!snapshot.empty()) open_door(snapshot);
  step.state = proto::STEP_PREPARED;
  if (!step.request.joint_commit()) write(number, step);
}

void ToyTask::read(Step& step) {
  step.results.clear();
  for (const std::string& fetch : step.part.fetch()) step.results.push_back(value_of(step, fetch));
}

Tensor ToyTask::value_of(const Step& step, const std::string& fetch) const {
  const std::string name = node_of_tensor(fetch);
  for (int i = 0; i < step.part.feed_size(); ++i) {
    if (step.part.feed(i) == fetch) return step.feeds.at(static_cast<size_t>(i));
  }
  for (const proto::NodeDef& node : step.part.graph().node()) {
    if (node.name() != name) continue;
    const std::string variable = node.op() == "Identity" ? node_of_tensor(node.input(0)) : name;
    const auto count = counts.find(variable);
    const bool is_variable =
        std::any_of(step.part.graph().node().begin(), step.part.graph().node().end(),
                    [&](const auto& other) { return other.name() == variable && other.op() == "VariableV2"; });
    if (is_variable) return Tensor::scalar(count == counts.end() ? int64_t{0} : count->second);
  }
  return Tensor::scalar(name);
}

// Waits while a gate is shut, unless it may pass.
void ToyTask::write(int64_t number, Step& step) {
  step.state = proto::STEP_COMMITTED;
  const bool changes = std::any_of(step.part.graph().node().begin(), step.part.graph().node().end(), is_assignment);
  if (changes && !std::includes(step.past.begin(), step.past.end(), doors_.begin(), doors_.end())) return;
  if (changes && committed.insert(number).second) {
    for (const proto::NodeDef& node : step.part.graph().node()) {
      if (is_assignment(node)) ++counts[node_of_tensor(node.input(0))];
    }
  }
  step.is_over = true;
  step.error = fails_later;
  answer(step);
}

void ToyTask::set_aborted(Step& step, std::exception_ptr error) {
  step.state = proto::STEP_ABORTED;
  step.error = std::move(error);
  step.is_over = true;
  answer(step);
}

void ToyTask::answer(Step& step) {
  proto::RunPartReply prepared;
  prepared.set_is_prepared(true);
  const bool is_joint = step.request.joint_commit();
  Message results{"", step.results};
  if (step.request.trace() && trace) results.tensors.push_back(Tensor::scalar(*trace));
  if (step.is_over) {
    if (!is_joint || step.state == proto::STEP_ABORTED) reply_or_fail(step.runs, step.error, results);
    reply_or_fail(step.written, step.state == proto::STEP_ABORTED ? step.error : nullptr, {});
    reply_or_fail(step.commits, step.error, results);
  }
  if (is_joint && (step.state == proto::STEP_PREPARED || step.state == proto::STEP_COMMITTED))
    reply_or_fail(step.runs, nullptr, to_message(prepared));
}

void ToyTask::commit(const Call& call) {
  const auto request = request_of<proto::CommitRequest>(call);
  const auto found = steps_.find(request.step());
  if (found == steps_.end()) throw AbortedError(fmt::format("step {} was never heard of", request.step()));
  Step& step = found->second;
  if (!step.request.joint_commit() || step.state == proto::STEP_RUNNING)
    throw FailedPreconditionError(fmt::format("step {} is not prepared", request.step()));
  if (!request.snapshot().empty()) step.past.insert(doors_.begin(), doors_.end());
  (request.snapshot().empty() ? step.commits : step.written).push_back(call);
  const bool may_write = !step.is_in_doubt || !request.snapshot().empty();
  if (!step.is_over && step.state != proto::STEP_ABORTED && may_write) return write(request.step(), step);
  answer(step);
}

void ToyTask::abort(const Call& call) {
  const auto request = request_of<proto::AbortRequest>(call);
  proto::AbortReply reply;
  const auto found = steps_.find(request.step());
  if (found == steps_.end()) {
    reply.set_state(forgotten_.try_emplace(request.step(), proto::STEP_ABORTED).first->second);
  } else {
    Step& step = found->second;
    const bool may_abort = !step.is_over && step.state != proto::STEP_COMMITTED;
    if (may_abort) set_aborted(step, std::make_exception_ptr(ConsequenceError(from_error_body(request.error()))));
    reply.set_state(step.state);
  }
  call->reply(to_message(reply));
}

void ToyTask::ask(const Call& call) {
  const auto request = request_of<proto::AskRequest>(call);
  proto::AskReply reply;
  const auto found = steps_.find(request.step());
  if (found == steps_.end()) {
    const proto::StepState unknown = request.resolve() ? proto::STEP_ABORTED : proto::STEP_UNKNOWN;
    const auto forgotten = forgotten_.find(request.step());
    reply.set_state(forgotten != forgotten_.end() ? forgotten->second : unknown);
    if (request.resolve() && forgotten == forgotten_.end()) forgotten_[request.step()] = unknown;
  } else {
    Step& step = found->second;
    if (request.resolve() && step.state == proto::STEP_RUNNING)
      set_aborted(step, std::make_exception_ptr(AbortedError("a participant has lost the master")));
    if (request.resolve() && step.state == proto::STEP_PREPARED) ask_others(request.step());
    reply.set_state(step.state);
  }
  call->reply(to_message(reply));
}

void ToyTask::look_at_step(const Call& call) {
  ++looks_;
  if (is_silent) return unanswered_looks_.push_back(call);
  proto::LookAtStepReply reply = place;
  const auto found = steps_.find(request_of<proto::LookAtStepRequest>(call).step());
  if (found != steps_.end()) {
    reply.set_state(found->second.state);
    reply.set_is_over(found->second.is_over);
  }
  call->reply(to_message(reply));
}

// In doubt: does what another participant has done; if none has committed, nobody will.
void ToyTask::ask_others(int64_t number) {
  Step& step = steps_.at(number);
  if (std::exchange(step.is_in_doubt, true)) return;
  const auto open = std::make_shared<int>(0);
  proto::AskRequest request;
  request.set_step(number);
  request.set_resolve(true);
  const auto settle = [weak = weak_from_this(), number, open](bool is_known, bool is_committed) {
    const auto task = weak.lock();
    const auto found = task != nullptr ? task->steps_.find(number) : std::map<int64_t, Step>::iterator();
    if (task == nullptr || found == task->steps_.end()) return;
    Step& asked = found->second;
    if (asked.is_over || asked.state != proto::STEP_PREPARED) return;
    if (is_known && is_committed) return task->write(number, asked);
    if (--*open > 0 && !is_known) return;
    task->set_aborted(asked, std::make_exception_ptr(AbortedError("its master has gone, and nobody has committed it")));
  };
  std::vector<proto::Participant> others;
  for (const proto::Participant& participant : step.request.participant()) {
    if (participant.commits() && participant.task() != transport_->task()) others.push_back(participant);
  }
  *open = static_cast<int>(others.size());
  for (const proto::Participant& other : others) {
    CallRequest call{.task = other.task(),
                     .method = methods::kAsk,
                     .incarnation = other.incarnation(),
                     .message = to_message(request)};
    const auto ask_again = std::make_shared<std::function<void()>>();
    *ask_again = [weak = weak_from_this(), call, settle, again = std::weak_ptr(ask_again)] {
      const auto task = weak.lock();
      if (task == nullptr) return;
      task->transport_->start(call, [settle, kept = again.lock()](CallReply reply) {
        if (reply.is_broken && kept != nullptr) return (*kept)();
        if (reply.error != nullptr) return settle(false, false);
        const auto state = header_of<proto::AskReply>(reply.message, "Ask").state();
        settle(state != proto::STEP_PREPARED, state == proto::STEP_COMMITTED);
      });
    };
    (*ask_again)();
  }
}

// ---- Snapshots, changes, resets ----

void ToyTask::freeze(const Call& call) {
  const auto request = request_of<proto::FreezeRequest>(call);
  doors_.insert(request.snapshot());
  const Seconds end = network_.clock().now() + Seconds{request.lease_secs()};
  network_.clock().at(end, [weak = weak_from_this(), snapshot = request.snapshot()] {
    if (const auto task = weak.lock()) task->open_door(snapshot);
  });
  proto::FreezeReply reply;
  for (const auto& [number, step] : steps_) {
    if (!step.request.joint_commit()) continue;
    if (committed.contains(number)) {
      reply.add_committed(number);
    } else if (!step.is_over && step.state != proto::STEP_RUNNING) {
      reply.add_prepared(number);
    }
  }
  call->reply(to_message(reply));
}

// The step is the count of the first variable.
void ToyTask::take(const Call& call) {
  const auto request = request_of<proto::TakeRequest>(call);
  if (!taken_.contains(request.snapshot()) && !doors_.contains(request.snapshot()))
    throw AbortedError("the gate is not shut for " + request.snapshot());
  taken_.insert(request.snapshot());
  proto::TakeReply reply;
  reply.set_has_global_step(!request.global_step().empty());
  if (reply.has_global_step()) reply.set_global_step(counts.empty() ? 0 : counts.begin()->second);
  open_door(request.snapshot());
  call->reply(to_message(reply));
}

void ToyTask::open(const Call& call) {
  taken_.erase(request_of<proto::OpenRequest>(call).snapshot());
  open_door(request_of<proto::OpenRequest>(call).snapshot());
  call->reply(to_message(proto::OpenReply()));
}

void ToyTask::open_door(const std::string& snapshot) {
  if (doors_.erase(snapshot) == 0 || !doors_.empty()) return;
  for (auto& [number, step] : steps_) {
    if (!step.is_over && step.state == proto::STEP_COMMITTED) write(number, step);
  }
}

void ToyTask::wait_for_change(const Call& call) {
  proto::WaitForChangeReply reply;
  reply.set_generation(generation_);
  if (request_of<proto::WaitForChangeRequest>(call).generation() != generation_) return call->reply(to_message(reply));
  waiting_for_change_.push_back(call);
}

void ToyTask::change() {
  proto::WaitForChangeReply reply;
  reply.set_generation(++generation_);
  for (const Call& call : std::exchange(waiting_for_change_, {})) call->reply(to_message(reply));
}

void ToyTask::reset(const Call& call) {
  const auto request = request_of<proto::ResetRequest>(call);
  resets.push_back(fmt::format("{}", fmt::join(request.container(), ",")));
  counts.clear();
  while (!sessions_.empty()) end_session(std::string(sessions_.begin()->first), "its containers were reset");
  call->reply(to_message(proto::ResetReply()));
}

}  // namespace longhaul
