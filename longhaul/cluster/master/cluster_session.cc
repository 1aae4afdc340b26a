#include "longhaul/cluster/master/cluster_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "longhaul/base/deadline.h"
#include "longhaul/base/first_names.h"
#include "longhaul/base/log.h"
#include "longhaul/cluster/master/cluster_step.h"
#include "longhaul/cluster/master/frozen_tasks.h"
#include "longhaul/cluster/master/taken_snapshot.h"
#include "longhaul/cluster/master/task_snapshot.h"
#include "longhaul/cluster/tasks/stop_notices.h"
#include "longhaul/cluster/tasks/task_changes.h"
#include "longhaul/cluster/transport/call_group.h"
#include "longhaul/cluster/transport/methods.h"
#include "longhaul/cluster/transport/task_errors.h"
#include "longhaul/proto/config.pb.h"

namespace longhaul {
namespace {

constexpr Seconds kLongestClose{10};
constexpr Seconds kResetConnects{2};  // to a task that is to be reset

// A snapshot run freezes the tasks itself.
class ClusterSnapshots : public Snapshots {
 public:
  std::vector<Tensor> take(Session& session, const std::vector<Fetch>& fetches) override {
    return session.run(fetches, {}, {.snapshot = true});
  }
  void prepare(const std::function<bool()>&) override {}  // the memory is the tasks'
  uint64_t bytes_free() const override { return 0; }
};

Session::Request snapshot_request(const Graph& graph, const std::vector<Fetch>& fetches) {
  Session::Request request{.options = {.snapshot = true}};
  for (const Fetch& fetch : fetches) request.fetches.push_back(fetch.resolve(graph));
  return request;
}

// For the tasks that have not answered; the others may have been reset.
[[noreturn]] void throw_reset_unanswered(Transport& transport, const std::vector<std::string>& tasks,
                                         const CallGroup& calls, const WaitLimits& limits) {
  if (limits.cancellation != nullptr) limits.cancellation->check();
  std::vector<std::string> silent;
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (!calls.has_ended(i)) silent.push_back(task_text(tasks[i], transport.address_of(tasks[i])));
  }
  throw DeadlineExceededError(fmt::format("Reset has not been answered in time by {}", first_names(silent)));
}

// The time until which a close may wait.
Seconds end_of_close(const Deadline* deadline, Clock& clock) {
  constexpr Seconds kAtLeast{1};
  const Seconds end = clock.now() + kLongestClose;
  const std::optional<Seconds> half = half_time(deadline, clock, kAtLeast)();
  return half ? std::min(end, *half) : end;
}

}  // namespace

ClusterSession::State::State(Transport& the_transport, const ClusterSessionOptions& options)
    : transport(the_transport),
      operation_timeout(options.session.operation_timeout),
      is_isolated(options.session.isolate_session_state),
      streaming(options.streaming),
      tasks(SessionTasks::create(the_transport, {.session = fmt::format("{:016x}", new_incarnation()),
                                                 .isolated = options.session.isolate_session_state,
                                                 .home = options.home,
                                                 .tasks = options.tasks,
                                                 .called = options.called,
                                                 .keeps = options.keeps,
                                                 .device_filters = options.session.device_filters,
                                                 .task_wait = options.session.task_wait.value_or(options.max_wait)})),
      runs(tasks, {.placer = {.allow_soft_placement = options.session.allow_soft_placement},
                   .log_device_placement = options.session.log_device_placement}),
      open_runs(the_transport.clock(), tasks->cancellation()) {}

WaitLimits ClusterSession::State::limits(Seconds timeout, Cancellation& cancellation) {
  if (timeout.count() <= 0) timeout = operation_timeout;
  return {.deadline = timeout.count() > 0 ? transport.clock().now() + timeout : Seconds{0},
          .cancellation = &cancellation};
}

std::vector<Tensor> ClusterSession::State::run(const Graph& graph, const Request& request,
                                               std::span<const Tensor* const> feed_values,
                                               proto::RunMetadata* metadata) {
  const OpenRuns::Run running = open_runs.begin();
  Cancellation of_run(&tasks->cancellation(), request.options.cancellation);
  of_run.check();
  return run_within(graph, request, feed_values, metadata, limits(request.options.timeout, of_run));
}

std::vector<Tensor> ClusterSession::State::run_within(const Graph& graph, const Request& request,
                                                      std::span<const Tensor* const> feed_values,
                                                      proto::RunMetadata* metadata, const WaitLimits& limits_of_run) {
  const Seconds began = transport.clock().now();
  const std::shared_ptr<const ClusterRun> run = prepare(graph, request, limits_of_run);
  const auto due = run->writes() ? fetches.take(request) : nullptr;
  const StepCount::Run counted(steps, run->writes());
  const bool is_traced = metadata != nullptr && request.options.trace_level != TraceLevel::kNoTrace;
  proto::RunMetadata told;
  proto::StepStats* const trace = is_traced ? told.mutable_step_stats() : nullptr;
  std::vector<Tensor> results = due != nullptr ? run_with(*due, graph, request, feed_values, limits_of_run, trace)
                                               : run_step(run, feed_values, limits_of_run, trace);
  newest_step.note(graph, request.fetches, results, began);
  if (run->writes() && !watches.is_empty())
    watches.look([&](const Output& step) { return read_step(step, limits_of_run); });
  if (metadata == nullptr) return results;
  metadata->Swap(&told);
  if (request.options.output_partition_graphs)
    metadata->mutable_partition_graphs()->Assign(run->graphs.begin(), run->graphs.end());
  return results;
}

std::shared_ptr<const ClusterRun> ClusterSession::State::prepare(const Graph& graph, const Request& request,
                                                                 const WaitLimits& limits_of_run) {
  return with_losses_told(*tasks, [&] { return runs.get(graph, request, limits_of_run); });
}

std::vector<Tensor> ClusterSession::State::run_step(const std::shared_ptr<const ClusterRun>& run,
                                                    std::span<const Tensor* const> feed_values,
                                                    const WaitLimits& limits_of_run, proto::StepStats* trace) {
  if (!run->is_snapshot || run->parts.size() < 2)
    return ClusterStep(tasks, run, limits_of_run, /*snapshot=*/{}, trace).run(feed_values);
  FrozenTasks frozen(tasks, run->tasks());
  with_losses_told(*tasks, [&] { frozen.freeze(limits_of_run); });
  std::vector<Tensor> results = ClusterStep(tasks, run, limits_of_run, frozen.id(), trace).run(feed_values);
  frozen.keep();
  return results;
}

std::vector<Tensor> ClusterSession::State::run_with(const StepFetch& due, const Graph& graph, const Request& request,
                                                    std::span<const Tensor* const> feed_values,
                                                    const WaitLimits& limits_of_run, proto::StepStats* trace) {
  Request more = request;
  for (const Output& output : due.fetches) more.fetches.push_back({output.op(), output.index()});
  std::vector<Tensor> results;
  try {
    results = run_step(prepare(graph, more, limits_of_run), feed_values, limits_of_run, trace);
  } catch (...) {
    deliver(due, {}, std::current_exception());
    throw;
  }
  const auto first = results.begin() + static_cast<std::ptrdiff_t>(request.fetches.size());
  deliver(due, {first, results.end()}, nullptr);
  results.resize(request.fetches.size());
  return results;
}

void ClusterSession::State::keep_until_close(std::shared_ptr<const void> of_one) {
  MutexLock lock(notices_mutex);
  notices.push_back(std::move(of_one));
}

void ClusterSession::State::drop_notices() {
  std::vector<std::shared_ptr<const void>> dropped;  // without the lock
  MutexLock lock(notices_mutex);
  dropped.swap(notices);
}

int64_t ClusterSession::State::read_step(const Output& step, const WaitLimits& limits_of_read) {
  const Request request{.fetches = {{step.op(), step.index()}}};
  try {
    const auto run = prepare(step.op().graph(), request, limits_of_read);
    return run_step(run, {}, limits_of_read, /*trace=*/nullptr).at(0).item<int64_t>();
  } catch (const FailedPreconditionError&) {  // it is not initialised
    return 0;
  }
}

// A run that is looked up once.
class ClusterSession::ClusterCallable : public CompiledRun {
 public:
  ClusterCallable(std::shared_ptr<State> state, const Graph& graph, Request request)
      : state_(std::move(state)), graph_(graph), request_(std::move(request)) {}

  void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) override {
    std::vector<Tensor> values = state_->run(graph_, request_, feeds, nullptr);
    std::move(values.begin(), values.end(), std::back_inserter(*results));
  }

 private:
  const std::shared_ptr<State> state_;
  const Graph& graph_;
  const Request request_;
};

ClusterSession::ClusterSession(Graph& graph, Transport& transport, const ClusterSessionOptions& options)
    : Session(graph), state_(std::make_shared<State>(transport, options)) {}

ClusterSession::~ClusterSession() {
  close();
}

SessionCapabilities ClusterSession::capabilities() {
  return {.step_fetching = &state_->fetches,
          .step_watching = this,
          .snapshot_keeping = this,
          .task_snapshots = this,
          .model_watching = this,
          .model_reset = this,
          .step_fates = this,
          .step_reading = this,
          .stop_noticing = this,
          .training_ending = this,
          .training_joining = this};
}

std::shared_ptr<const void> ClusterSession::watch_steps(StepWatch watch) {
  const OpenRuns::Run running = state_->open_runs.begin();
  return state_->watches.add(std::move(watch),
                             [this](const Output& step) { return state_->read_step(step, state_->limits()); });
}

std::optional<ReadStep> ClusterSession::newest_step() const {
  return state_->newest_step.read(state_->transport.clock().now());
}

std::shared_ptr<Snapshots> ClusterSession::snapshots() {
  return std::make_shared<ClusterSnapshots>();
}

std::vector<Tensor> ClusterSession::do_run(const Request& request, std::span<const Tensor* const> feed_values,
                                           proto::RunMetadata* metadata) {
  const std::shared_ptr<State> state = state_;  // a close may leave the run behind
  return state->run(graph(), request, feed_values, metadata);
}

// Made at the first call: making it may have to wait for tasks.
std::shared_ptr<CompiledRun> ClusterSession::do_make_callable(const Request& request) {
  state_->open_runs.begin();
  return std::make_shared<ClusterCallable>(state_, graph(), request);
}

std::vector<DeviceAttributes> ClusterSession::list_devices() {
  const OpenRuns::Run running = state_->open_runs.begin();
  return state_->tasks->list_devices(state_->limits());
}

std::unique_ptr<TakenSnapshot> ClusterSession::take_on_tasks(const std::vector<Fetch>& fetches,
                                                             std::optional<size_t> global_step) {
  const OpenRuns::Run running = state_->open_runs.begin();
  const WaitLimits limits = state_->limits();
  const auto run = state_->prepare(graph(), snapshot_request(graph(), fetches), limits);
  return with_losses_told(*state_->tasks,
                          [&] { return std::make_unique<TakenSnapshot>(state_->tasks, run, global_step, limits); });
}

std::vector<std::string> ClusterSession::tasks_of(const std::vector<Fetch>& fetches) {
  const OpenRuns::Run running = state_->open_runs.begin();
  const auto run = state_->prepare(graph(), snapshot_request(graph(), fetches), state_->limits());
  std::set<std::string> tasks;
  for (const TakenSnapshot::Value& value : TakenSnapshot::places_of(*run)) tasks.insert(value.task);
  if (tasks == std::set<std::string>{state_->transport.task()}) return {};
  return {tasks.begin(), tasks.end()};
}

std::unique_ptr<TaskSnapshot> ClusterSession::take_there(const std::vector<Fetch>& fetches,
                                                         std::optional<size_t> global_step) {
  auto taken = take_on_tasks(fetches, global_step);
  return std::make_unique<SnapshotOnTasks>(state_->tasks, std::move(taken), state_->streaming);
}

std::vector<SeenFile> ClusterSession::look(const std::vector<std::string>& tasks, const std::string& path,
                                           LookFor purpose) {
  const OpenRuns::Run running = state_->open_runs.begin();
  return look_on_tasks(*state_->tasks, tasks, path, purpose);
}

std::unique_ptr<ModelWatch> ClusterSession::watch_model(std::function<void()> changed) {
  return std::make_unique<TaskChanges>(state_->tasks, std::move(changed));
}

void ClusterSession::reset_model(Seconds at_most) {
  SessionTasks& tasks = *state_->tasks;
  tasks.cancellation().check();
  std::vector<std::string> called;
  for (const std::string& task : tasks.used()) called.push_back(tasks.called(task));
  reset_tasks(state_->transport, called, {}, {.deadline = state_->transport.clock().now() + at_most});
}

StepFate ClusterSession::find_fate(int64_t step, Seconds at_most) {
  return state_->tasks->doubtful_steps().find_fate(step, at_most);
}

std::shared_ptr<const void> ClusterSession::notice_stops(std::function<void(const StopNotice&)> noticed) {
  const auto listener = std::make_shared<const std::function<void(const StopNotice&)>>(std::move(noticed));
  const auto tell = [weak = std::weak_ptr(listener)](const StopNotice& notice) {
    if (const auto still = weak.lock()) (*still)(notice);
  };
  state_->keep_until_close(StopNotices::create(state_->tasks, tell));
  return listener;
}

// A call without an answer ends at its deadline, a moment before the wait.
void ClusterSession::end_training(Seconds at_most) {
  SessionTasks& tasks = *state_->tasks;
  if (tasks.cancellation().cancelled()) return;
  const Seconds end = state_->transport.clock().now() + at_most;
  const std::vector<std::string> told = tasks.used();
  const Message message = to_message(proto::EndTrainingRequest());
  CallGroup calls(state_->transport, at_most);
  for (const std::string& task : told) calls.start(tasks.request_to(task, methods::kEndTraining, message), end);
  while (const auto ended = calls.next({.deadline = end + Seconds{1}})) {
    const std::exception_ptr& error = ended->reply.error;
    if (error) log_warning("task {} does not know of the training's end: {}", told[ended->call], message_of(error));
  }
}

std::unique_ptr<TaskChanges> ClusterSession::changes() {
  return std::make_unique<TaskChanges>(state_->tasks);
}

void ClusterSession::close_before(const Deadline* deadline) {
  if (!state_->open_runs.close()) return;
  state_->fetches.withdraw_all();
  const Seconds end = end_of_close(deadline, state_->transport.clock());
  const bool is_lost = state_->tasks->cancellation().cancelled();
  state_->tasks->cancellation().cancel("the session was closed (Session::Close)");
  state_->drop_notices();
  if (!state_->open_runs.wait_for_end(end))
    log_error("a session was closed, but one of its runs has not ended in time");
  try {
    if (!is_lost) state_->runs.deregister({.deadline = end});
  } catch (const std::exception& error) {
    log_warning("a session was closed, but not all of its tasks know: {}", error.what());
  }
  state_->tasks->end_watches();
}

void reset_tasks(Transport& transport, const std::vector<std::string>& tasks,
                 const std::vector<std::string>& containers, const WaitLimits& limits) {
  proto::ResetRequest request;
  for (const std::string& container : containers) request.add_container(container);
  CallGroup calls(transport, kResetConnects);
  for (const std::string& task : tasks) {
    calls.start({.task = task, .method = methods::kReset, .message = to_message(request), .connect = kResetConnects},
                limits.deadline);
  }
  std::vector<std::string> away;
  std::exception_ptr refused;
  while (calls.under_way() > 0) {
    const auto ended = calls.next(limits);
    if (!ended) throw_reset_unanswered(transport, tasks, calls, limits);
    if (ended->reply.is_broken) away.push_back(message_of(ended->reply.error));
    if (ended->reply.error != nullptr && !ended->reply.is_broken && refused == nullptr) refused = ended->reply.error;
  }
  if (refused != nullptr) std::rethrow_exception(refused);
  if (away.empty()) return;
  throw UnavailableError(fmt::format(
      "containers were reset on {} of {} tasks. What a process has that has died is gone with it; if the task lives, "
      "reset again once it can be reached. {}",
      tasks.size() - away.size(), tasks.size(), first_names(away)));
}

}  // namespace longhaul
