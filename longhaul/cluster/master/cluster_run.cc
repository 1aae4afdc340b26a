#include "longhaul/cluster/master/cluster_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/log.h"
#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/session/request_key.h"

namespace longhaul {
namespace {

void add_bundles(const std::vector<RunPart::Message>& messages, const SessionTasks& tasks,
                 google::protobuf::RepeatedPtrField<proto::Bundle>* bundles) {
  for (const RunPart::Message& message : messages) {
    proto::Bundle* bundle = bundles->Add();
    bundle->set_id(message.bundle);
    bundle->set_task(tasks.called(message.peer));
    bundle->set_values(message.values);
  }
}

// A task that has another name for itself knows its devices without it.
void leave_out_task(proto::GraphDef* graph) {
  for (proto::NodeDef& node : *graph->mutable_node()) {
    if (node.device().empty()) continue;
    const DeviceSpec device = DeviceSpec::parse(node.device());
    node.set_device(DeviceSpec{.type = device.type, .index = device.index}.to_string());
  }
}

// Takes the part's graph and constants.
Message registration(const SessionTasks& tasks, const std::string& handle, bool is_snapshot,
                     const std::string& joined_as, RunPart& part) {
  proto::RegisterGraphRequest request;
  request.set_session(tasks.session());
  request.set_graph_handle(handle);
  request.mutable_graph()->Swap(&part.graph);
  if (tasks.called(part.task) != part.task) leave_out_task(request.mutable_graph());
  std::vector<Tensor> constants;
  for (auto& [name, value] : part.constants) {
    request.add_constant(name);
    constants.push_back(std::move(value));
  }
  for (const RunPart::Named& feed : part.feeds) request.add_feed(feed.name);
  for (const RunPart::Named& fetch : part.fetches) request.add_fetch(fetch.name);
  for (const std::string& target : part.targets) request.add_target(target);
  add_bundles(part.sends, tasks, request.mutable_sent());
  add_bundles(part.receives, tasks, request.mutable_received());
  request.set_is_snapshot(is_snapshot);
  request.set_run_writes(part.run_writes);
  request.set_graph_seed(part.graph_seed);
  request.set_joined_as(joined_as);
  return to_message(request, std::move(constants));
}

// Once all parts know who commits.
void prepare_requests(ClusterRun& run, const SessionTasks& tasks) {
  proto::RunPartRequest shared;
  shared.set_session(tasks.session());
  for (const ClusterRun::Part& part : run.parts) {
    proto::Participant* participant = shared.add_participant();
    participant->set_task(tasks.called(part.task));
    participant->set_incarnation(tasks.incarnation(part.task));
    participant->set_commits(part.commits);
  }
  for (ClusterRun::Part& part : run.parts) {
    part.request = shared;
    part.request.set_graph_handle(part.handle);
    part.request.set_joint_commit(part.commits && run.is_joint());
  }
}

}  // namespace

std::vector<std::string> ClusterRun::tasks() const {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.task);
  std::sort(names.begin(), names.end());
  return names;
}

ClusterRuns::ClusterRuns(std::shared_ptr<SessionTasks> tasks, const Options& options)
    : tasks_(std::move(tasks)), options_(options), placer_(options.placer) {}

std::shared_ptr<const ClusterRun> ClusterRuns::get(const Graph& graph, const Session::Request& request,
                                                   const WaitLimits& limits) {
  const std::string key = key_of(request);
  if (auto known = begin(key, limits)) return known;
  try {
    auto made = make(graph, request, limits);
    end(key, made);
    return made;
  } catch (...) {
    end(key, nullptr);
    throw;
  }
}

// The run, or null: the caller is to make it. The mutex is not held while the cancellation is asked: that calls us with
// its own held.
std::shared_ptr<const ClusterRun> ClusterRuns::begin(const std::string& key, const WaitLimits& limits) {
  bool is_cancelled = false;  // guarded by mutex_
  const Cancellation::Watch wake(*limits.cancellation, [&] {
    MutexLock lock(mutex_);
    is_cancelled = true;
    made_.notify_all();
  });
  {
    MutexLock lock(mutex_);
    await_made(key, limits.deadline, is_cancelled);
    Entry& entry = runs_[key];
    if (!entry.is_being_made) {
      entry.is_being_made = entry.run == nullptr;
      return entry.run;
    }
  }
  limits.cancellation->check();
  throw InternalError("a wait for a run has ended, but nobody has ended it");
}

void ClusterRuns::await_made(const std::string& key, Seconds deadline, const bool& is_cancelled) {
  constexpr Seconds kLook{3600};
  Clock& clock = tasks_->transport().clock();
  while (runs_[key].is_being_made && !is_cancelled) {
    if (deadline.count() != 0 && clock.now() >= deadline)
      throw DeadlineExceededError("the run is still being prepared by another thread, which waits for a task");
    // wait: for the thread that makes it, whose own waits are bounded; for a cancel; for the deadline
    clock.wait_until(made_, mutex_, deadline.count() != 0 ? deadline : clock.now() + kLook);
  }
}

void ClusterRuns::end(const std::string& key, std::shared_ptr<const ClusterRun> run) {
  MutexLock lock(mutex_);
  runs_[key] = {.is_being_made = false, .run = std::move(run)};
  made_.notify_all();
}

std::shared_ptr<const ClusterRun> ClusterRuns::make(const Graph& graph, const Session::Request& request,
                                                    const WaitLimits& limits) {
  const RunOrder order(request);
  DividedRun divided = divide_run(request, order, place(graph, order.operations(), limits));
  auto run = std::make_shared<ClusterRun>();
  run->fetched_feeds = divided.fetched_feeds;
  run->fetches = request.fetches.size();
  run->is_snapshot = request.options.snapshot;
  register_parts(*run, std::move(divided), limits);
  return run;
}

// A task that has not been asked is taken at its word: it is placed on, asked, and then the run is placed again.
Placement ClusterRuns::place(const Graph& graph, const std::vector<Operation>& needed, const WaitLimits& limits) {
  for (;;) {
    Placement placement = [&] {
      const DeviceList devices = tasks_->devices();
      MutexLock lock(placer_mutex_);
      return placer_.place(graph, needed, devices);
    }();
    if (tasks_->use(placement.tasks(), limits)) continue;
    MutexLock lock(placer_mutex_);
    if (options_.log_device_placement) log_new(placement);
    return placement;
  }
}

void ClusterRuns::log_new(const Placement& placement) {
  for (const std::string& line : placement.lines()) {
    if (logged_.insert(line).second) log_info("{}", line);
  }
}

void ClusterRuns::register_parts(ClusterRun& run, DividedRun divided, const WaitLimits& limits) {
  const std::string joined = joined_as();
  std::vector<CallRequest> requests;
  for (RunPart& part : divided.parts) {
    run.graphs.push_back(part.graph);
    run.parts.push_back({.task = part.task,
                         .handle = fmt::format("{:016x}", next_handle_.fetch_add(1)),
                         .feeds = part.feeds,
                         .fetches = part.fetches});
    requests.push_back(
        tasks_->request_to(part.task, methods::kRegisterGraph,
                           registration(*tasks_, run.parts.back().handle, run.is_snapshot, joined, part)));
  }
  const std::vector<Message> replies = call_all(tasks_->transport(), std::move(requests), limits);
  for (size_t i = 0; i < replies.size(); ++i) {
    run.parts[i].commits = header_of<proto::RegisterGraphReply>(replies[i], "RegisterGraph").changes_state();
    run.commits += run.parts[i].commits ? 1 : 0;
  }
  prepare_requests(run, *tasks_);
}

// All clients have one name: each session of theirs is its own.
void ClusterRuns::join_training(int64_t step) {
  const std::string& program = tasks_->is_in_task() ? tasks_->transport().task() : tasks_->session();
  MutexLock lock(mutex_);
  joined_as_ = fmt::format("{} {}", program, step);
}

std::string ClusterRuns::joined_as() const {
  MutexLock lock(mutex_);
  return joined_as_;
}

void ClusterRuns::deregister(const WaitLimits& limits) {
  std::map<std::string, proto::DeregisterGraphRequest> by_task;
  {
    MutexLock lock(mutex_);
    for (const auto& [key, entry] : runs_) {
      if (entry.run == nullptr) continue;
      for (const ClusterRun::Part& part : entry.run->parts) by_task[part.task].add_graph_handle(part.handle);
    }
    runs_.clear();
  }
  std::vector<CallRequest> requests;
  for (auto& [task, request] : by_task) {
    request.set_session(tasks_->session());
    requests.push_back(tasks_->request_to(task, methods::kDeregisterGraph, to_message(request)));
  }
  call_all(tasks_->transport(), std::move(requests), limits);
}

}  // namespace longhaul
