#include "longhaul/cluster/worker/worker_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"

namespace longhaul {

PsProcess::PsProcess(SimulatedNetwork& network, const std::string& task, WorkerOptions options)
    : transport(network.start(task)),
      resources(std::make_shared<TaskResources>(
          TaskOptions{.job = "ps", .task = task == kPs ? 0 : 1, .clock = &network.clock()})) {
  options.threads.around = [&network](JobThreads::Job job) { return network.clock().around(std::move(job)); };
  worker = std::make_unique<Worker>(*transport, resources, options);
}

std::shared_ptr<VariableSlot> PsProcess::slot(const std::string& name) const {
  return resources->variables().slot(ResourceName{"ps", name});
}

float PsProcess::value(const std::string& name) const {
  return slot(name)->initialized() ? slot(name)->read().to_host().item<float>() : -1;
}

DividedRun TwoTaskModel::divide(const std::vector<Fetch>& fetches, bool is_snapshot) const {
  Session::Request request{.feeds = {x}};
  request.options.snapshot = is_snapshot;
  for (const Fetch& fetch : fetches) request.fetches.push_back(fetch.resolve(graph));
  const RunOrder order(request);
  const DeviceSpec own = DeviceSpec::parse(kWorker);
  const DeviceList devices({{.task = own}, {.task = DeviceSpec::parse(kPs)}, {.task = DeviceSpec::parse(kPs1)}}, own);
  return divide_run(request, order, Placer().place(graph, order.operations(), devices));
}

OutgoingCall::Done LateReply::done() {
  return [state = state_](CallReply reply) {
    MutexLock lock(state->mutex);
    state->reply = std::move(reply);
  };
}

std::optional<CallReply> LateReply::get() const {
  MutexLock lock(state_->mutex);
  return state_->reply;
}

bool ScriptedMaster::open() {
  std::vector<CallRequest> requests;
  for (const std::string& task : {kPs, kPs1}) {
    requests.push_back({.task = task, .method = methods::kGetStatus, .message = to_message(proto::GetStatusRequest())});
  }
  const std::vector<CallReply> replies = call_all(std::move(requests));
  if (!all_good(replies)) return false;
  incarnations_ = {{kPs, replies[0].incarnation}, {kPs1, replies[1].incarnation}};
  for (const auto& [task, incarnation] : incarnations_) {
    watches_.push_back(std::make_unique<PeerWatch>(*transport_, task, incarnation, session_,
                                                   [lost = is_lost_](std::exception_ptr) { *lost = true; }));
  }
  return true;
}

std::optional<ScriptedMaster::Parts> ScriptedMaster::add(DividedRun run, bool is_snapshot) {
  Parts parts;
  std::vector<CallRequest> requests;
  for (RunPart& part : run.parts) {
    const std::string handle = "part" + std::to_string(++last_handle_);
    requests.push_back(request(part.task, methods::kRegisterGraph, registration(part, handle, is_snapshot)));
    parts.push_back({.task = part.task, .handle = handle, .is_fed = !part.feeds.empty()});
  }
  const std::vector<CallReply> replies = call_all(std::move(requests));
  if (!all_good(replies)) return std::nullopt;
  for (size_t i = 0; i < parts.size(); ++i) {
    parts[i].commits = header_of<proto::RegisterGraphReply>(replies[i].message, "RegisterGraph").changes_state();
  }
  return parts;
}

ScriptedMaster::Outcome ScriptedMaster::step(const Parts& parts, float x) {
  const int64_t number = new_step();
  if (!all_good(run(parts, number, x))) {
    each(parts, number, methods::kAbort);
    each(parts, number, methods::kCleanup);
    return Outcome::kAborted;
  }
  const bool is_committed = !is_joint(parts) || all_good(each(parts, number, methods::kCommit));
  each(parts, number, methods::kCleanup);
  return is_committed ? Outcome::kCommitted : Outcome::kNotKnown;
}

std::vector<CallReply> ScriptedMaster::run(const Parts& parts, int64_t step, float x, const std::string& snapshot) {
  std::vector<CallRequest> requests;
  for (const Part& part : parts) requests.push_back(run_request(parts, part, step, x, snapshot));
  return call_all(std::move(requests));
}

CallRequest ScriptedMaster::run_request(const Parts& parts, const Part& part, int64_t step, float x,
                                        const std::string& snapshot) const {
  proto::RunPartRequest asked;
  asked.set_session(session_);
  asked.set_graph_handle(part.handle);
  asked.set_step(step);
  asked.set_joint_commit(part.commits && is_joint(parts));
  asked.set_snapshot(snapshot);
  for (const Part& other : parts) {
    proto::Participant* participant = asked.add_participant();
    participant->set_task(other.task);
    participant->set_incarnation(incarnations_.at(other.task));
    participant->set_commits(other.commits);
  }
  std::vector<Tensor> feeds;
  if (part.is_fed) feeds.push_back(Tensor::scalar(x));
  CallRequest call = request(part.task, methods::kRunPart, to_message(asked, std::move(feeds)));
  call.time_left = Seconds{30};
  return call;
}

std::vector<CallReply> ScriptedMaster::each(const Parts& parts, int64_t step, const char* method) {
  std::vector<CallRequest> requests;
  for (const Part& part : parts) {
    if (method == methods::kCommit && !part.commits) continue;
    requests.push_back(request(part.task, method, about_step(method, step)));
  }
  return call_all(std::move(requests));
}

Message ScriptedMaster::about_step(const std::string& method, int64_t step) {
  if (method == methods::kCleanup) {
    proto::CleanupRequest request;
    request.add_step(step);
    return to_message(request);
  }
  proto::CommitRequest request;  // the step's field is the same in all of them
  request.set_step(step);
  return to_message(request);
}

CallRequest ScriptedMaster::request(const std::string& task, const std::string& method, Message message) const {
  return {.task = task, .method = method, .incarnation = incarnations_.at(task), .message = std::move(message)};
}

CallReply ScriptedMaster::call(const std::string& task, const std::string& method,
                               const google::protobuf::MessageLite& message) {
  return call_all({request(task, method, to_message(message))}).at(0);
}

std::vector<CallReply> ScriptedMaster::call_all(std::vector<CallRequest> requests) {
  std::vector<CallReply> replies(requests.size(), CallReply{.is_broken = true});
  for (int round = 0; round < 3; ++round) {
    const auto awaited = std::make_shared<Awaited>(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      if (!replies[i].is_broken) continue;
      ++awaited->missing;
      transport_->start(requests[i], [awaited, i](CallReply reply) { awaited->set(i, std::move(reply)); });
    }
    if (awaited->missing == 0) break;
    EXPECT_TRUE(network_.clock().run_until([&] { return awaited->missing == 0; }, Seconds{100}))
        << requests[0].method << " has no answer";
    MutexLock lock(awaited->mutex);
    for (size_t i = 0; i < requests.size(); ++i) {
      if (awaited->replies[i]) replies[i] = *awaited->replies[i];
    }
  }
  return replies;
}

bool ScriptedMaster::all_good(const std::vector<CallReply>& replies) {
  return std::all_of(replies.begin(), replies.end(),
                     [](const CallReply& reply) { return reply.error == nullptr && reply.incarnation != 0; });
}

bool ScriptedMaster::is_joint(const Parts& parts) {
  return std::count_if(parts.begin(), parts.end(), [](const Part& part) { return part.commits; }) > 1;
}

Message ScriptedMaster::registration(RunPart& part, const std::string& handle, bool is_snapshot) const {
  proto::RegisterGraphRequest request;
  request.set_session(session_);
  request.set_graph_handle(handle);
  request.mutable_graph()->Swap(&part.graph);
  std::vector<Tensor> constants;
  for (const auto& [name, value] : part.constants) {
    request.add_constant(name);
    constants.push_back(value);
  }
  for (const RunPart::Named& feed : part.feeds) request.add_feed(feed.name);
  for (const RunPart::Named& fetch : part.fetches) request.add_fetch(fetch.name);
  for (const std::string& target : part.targets) request.add_target(target);
  add_bundles(part.sends, request.mutable_sent());
  add_bundles(part.receives, request.mutable_received());
  request.set_is_snapshot(is_snapshot);
  request.set_run_writes(part.run_writes);
  return to_message(request, std::move(constants));
}

void ScriptedMaster::add_bundles(const std::vector<RunPart::Message>& messages,
                                 google::protobuf::RepeatedPtrField<proto::Bundle>* bundles) {
  for (const RunPart::Message& message : messages) {
    proto::Bundle* bundle = bundles->Add();
    bundle->set_id(message.bundle);
    bundle->set_task(message.peer);
    bundle->set_values(message.values);
  }
}

TwoTasks::TwoTasks(WorkerOptions options) : options_(std::move(options)) {
  network_.on_killed([this](const std::string& task) {
    if (const auto process = find(task)) {
      process->was_killed = true;
      process->worker->request_stop("its process was killed");
    }
  });
  network_.on_restart([this](const std::string& task) {
    if (task != kWorker) start(task);
  });
  start(kPs);
  start(kPs1);
}

TwoTasks::~TwoTasks() {
  for (const auto& process : all()) EXPECT_TRUE(process->worker->stop("the test ends", Seconds{60}));
}

std::vector<std::shared_ptr<PsProcess>> TwoTasks::all() {
  MutexLock lock(mutex_);
  return all_;
}

bool TwoTasks::any_was_killed() {
  const auto processes = all();
  return std::any_of(processes.begin(), processes.end(),
                     [](const auto& process) { return process->was_killed.load(); });
}

std::unique_ptr<ScriptedMaster> TwoTasks::new_master(const std::string& session) {
  if (!network_.is_alive(kWorker)) master_transport_ = network_.start(kWorker);
  return std::make_unique<ScriptedMaster>(network_, master_transport_, session);
}

bool TwoTasks::is_anything_left() {
  for (const auto& process : all()) {
    const Worker::Counts counts = process->worker->counts();
    if (counts.jobs != 0) return true;
    if (process->was_killed) continue;
    if (!(counts == Worker::Counts{.bundles = counts.bundles})) return true;
    if (!(process->transport->open_calls() == Transport::Open{})) return true;
  }
  return false;
}

void TwoTasks::start(const std::string& task) {
  auto process = std::make_shared<PsProcess>(network_, task, options_);
  MutexLock lock(mutex_);
  living_[task] = process;
  all_.push_back(std::move(process));
}

std::shared_ptr<PsProcess> TwoTasks::find(const std::string& task) {
  MutexLock lock(mutex_);
  const auto found = living_.find(task);
  return found == living_.end() ? nullptr : found->second;
}

}  // namespace longhaul
