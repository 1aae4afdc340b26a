#include "longhaul/runtime/direct_session.h"

#include <fmt/format.h>

#include <algorithm>

#include "longhaul/base/clock.h"
#include "longhaul/base/deadline.h"
#include "longhaul/base/log.h"
#include "longhaul/runtime/blas_kernels.h"
#include "longhaul/runtime/loaded_libtorch.h"
#include "longhaul/runtime/memory/freed_memory.h"
#include "longhaul/runtime/plan/plan_builder.h"
#include "longhaul/session/config_proto.h"
#include "longhaul/session/request_key.h"
#include "longhaul/session/step_trace.h"

namespace longhaul {
namespace {

// The tasks of the sessions for the target "": each has its own.
struct LocalTasks {
  Mutex mutex;
  std::vector<std::weak_ptr<TaskResources>> tasks GUARDED_BY(mutex);
};

LocalTasks& local_tasks() {
  static auto* const tasks = new LocalTasks;
  return *tasks;
}

void add_local_task(const std::shared_ptr<TaskResources>& task) {
  const MutexLock lock(local_tasks().mutex);
  std::erase_if(local_tasks().tasks, [](const auto& known) { return known.expired(); });
  local_tasks().tasks.push_back(task);
}

std::vector<std::weak_ptr<TaskResources>> all_local_tasks() {
  const MutexLock lock(local_tasks().mutex);
  return local_tasks().tasks;
}

// Who asks for GPUs would not like to find after a day that there were none.
void check_gpus(const SessionOptions& options, int gpus) {
  const auto asked = options.device_count.find("GPU");
  if (gpus > 0 || asked == options.device_count.end() || asked->second <= 0) return;
  throw InvalidArgumentError(
      "device_count asks for GPUs, but this libtorch finds none: it was built without CUDA, or the driver is missing, "
      "or CUDA_VISIBLE_DEVICES hides them (`longhaul doctor` tells which). Leave \"GPU\" out to train on the CPU then");
}

void tell_of_snapshots(const SessionOptions& options, int gpus) {
  if (gpus == 0 || !options.snapshot_memory) return;
  log_warning(
      "snapshot_memory is for variables in the host's memory: a snapshot of those on GPUs is a copy in the host's "
      "memory, "
      "as large as they are, until it is written");
}

std::shared_ptr<TaskResources> own_task(const SessionOptions& options) {
  auto task = std::make_shared<TaskResources>(TaskOptions{.cpu_devices = number_of_cpus(options),
                                                          .most_gpus = most_gpus(options),
                                                          .snapshot_memory = options.snapshot_memory});
  check_gpus(options, task->device_table().gpus());
  tell_of_snapshots(options, task->device_table().gpus());
  add_local_task(task);
  return task;
}

void need_this_process(const std::string& target) {
  if (target.empty()) return;
  throw NotFoundError(
      fmt::format("there is no session for the target '{}'; use '' for this process. For 'local' and "
                  "grpc://HOST:PORT, include <longhaul/server.h>",
                  target));
}

}  // namespace

class DirectSession::Running {
 public:
  explicit Running(State& state, size_t count = 0) : state_(state), counts_(state.run_counts[count]) {
    ++counts_.running;
    if (!state.ended.load()) return;
    leave();
    if (!state.closed.load()) state.session->cancellation().check();
    throw FailedPreconditionError("Attempted to use a closed Session.");
  }
  ~Running() {
    counts_.ended.fetch_add(1, std::memory_order_relaxed);
    leave();
  }
  Running(const Running&) = delete;

 private:
  // Whoever ends the session says so before it counts, and this looks after it has counted: one of the two sees the
  // other.
  void leave() {
    if (--counts_.running > 0 || !state_.ended.load()) return;
    const MutexLock lock(state_.idle_mutex);
    state_.idle.notify_all();
  }

  State& state_;
  State::RunCount& counts_;
};

// A compiled request. When summaries are due and this is a training step, it is run as a plan that computes both.
class DirectSession::DirectRun : public CompiledRun {
 public:
  // A cancellation in the request is its caller's, who may be gone when the run is called again.
  DirectRun(std::shared_ptr<State> state, const Session::Request& request)
      : state_(std::move(state)),
        request_(shared_by_calls(request)),
        plan_(PlanBuilder(request, *state_->session).build(), state_->session),
        count_(state_->new_count(plan_.writes_variables())) {}

  void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) override {
    call_within(feeds, state_->default_timeout, /*cancellation=*/nullptr, results, /*trace=*/nullptr);
  }

  const DevicesOfOperations& devices() const { return plan_.devices(); }

  // `cancellation`: the caller's; null: it has none.
  void call_within(std::span<const Tensor* const> feeds, Seconds timeout, Cancellation* cancellation,
                   std::vector<Tensor>* results, StepTrace* trace) {
    const Running running(*state_, count_);
    const Seconds deadline = timeout.count() > 0 ? Clock::real().now() + timeout : Seconds{0};
    if (cancellation == nullptr) return run(feeds, {.deadline = deadline}, results, trace);
    Cancellation of_run(&state_->session->cancellation(), cancellation);
    run(feeds, {deadline, &of_run}, results, trace);
  }

 private:
  static Session::Request shared_by_calls(Session::Request request) {
    request.options.cancellation = nullptr;
    return request;
  }

  void run(std::span<const Tensor* const> feeds, const WaitLimits& limits, std::vector<Tensor>* results,
           StepTrace* trace) {
    if (!plan_.writes_variables()) return plan_.run(feeds, limits, results, trace);
    StepFetches& fetches = state_->step_fetches;
    if (const auto due = fetches.is_any_due() ? fetches.take(request_) : nullptr) {
      run_with(*due, feeds, limits, results, trace);
    } else {
      plan_.run(feeds, limits, results, trace);
    }
    if (state_->watched.load(std::memory_order_relaxed)) tell_who_watches();
  }

  void tell_who_watches() {
    std::vector<std::shared_ptr<WatchedStep>> steps;
    {
      std::lock_guard<std::mutex> lock(state_->mutex);
      std::erase_if(state_->watched_steps, [](const auto& step) { return step.expired(); });
      for (const auto& step : state_->watched_steps) {
        if (auto watched = step.lock()) steps.push_back(std::move(watched));
      }
      state_->watched.store(!state_->watched_steps.empty());
    }
    for (const auto& step : steps) step->look();
  }

  void run_with(const StepFetch& due, std::span<const Tensor* const> feeds, const WaitLimits& limits,
                std::vector<Tensor>* results, StepTrace* trace) {
    const size_t first = results->size() + request_.fetches.size();
    try {
      plan_with(due).run(feeds, limits, results, trace);
    } catch (...) {
      deliver(due, {}, std::current_exception());
      throw;
    }
    std::vector<Tensor> values(results->begin() + static_cast<std::ptrdiff_t>(first), results->end());
    results->resize(first);
    deliver(due, std::move(values), nullptr);
  }

  Plan& plan_with(const StepFetch& due) {
    Session::Request request = request_;
    for (const Output& output : due.fetches) request.fetches.push_back({output.op(), output.index()});
    std::lock_guard<std::mutex> lock(mutex_);
    auto& plan = extended_plans_[key_of(request)];
    if (!plan) {
      plan = std::make_unique<Plan>(PlanBuilder(request, *state_->session).build(), state_->session);
    }
    return *plan;
  }

  const std::shared_ptr<State> state_;
  const Session::Request request_;
  Plan plan_;
  const size_t count_;  // which of State::run_counts
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Plan>> extended_plans_;  // guarded by mutex_
};

DirectSession::DirectSession(Graph& graph, const SessionOptions& options)
    : DirectSession(graph, options, own_task(options)) {
  state_->owns_task = true;
}

DirectSession::DirectSession(Graph& graph, const SessionOptions& options, std::shared_ptr<TaskResources> task)
    : Session(graph), state_(std::make_shared<State>()) {
  require_compiled_libtorch();
  number_of_cpus(options);
  most_gpus(options);
  set_intra_op_threads(options.intra_op_parallelism_threads);
  warn_of_old_blas_kernels();
  keep_freed_memory();
  state_->session = std::make_shared<SessionState>(std::move(task), options.isolate_session_state, options);
  state_->end = std::make_unique<Cancellation::Watch>(state_->session->cancellation(),
                                                      [state = state_.get()] { state->ended.store(true); });
  state_->default_timeout = options.operation_timeout;
}

DirectSession::~DirectSession() {
  close();
}

SessionCapabilities DirectSession::capabilities() {
  return {
      .step_fetching = &state_->step_fetches, .step_watching = this, .snapshot_keeping = this, .program_steps = this};
}

std::vector<DeviceAttributes> DirectSession::list_devices() {
  const Running running(*state_);
  return state_->session->task().devices();
}

std::shared_ptr<Snapshots> DirectSession::snapshots() {
  return state_->session->variables().snapshots();
}

void DirectSession::begin_step() {
  state_->session->gate().enter_ahead();
}

void DirectSession::abandon_step() {
  state_->session->gate().leave_ahead();
}

std::shared_ptr<const void> DirectSession::watch_steps(StepWatch watch) {
  SessionState& session = *state_->session;
  auto step = std::make_shared<WatchedStep>(std::move(watch), session.variables(), session.task().default_container());
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->watched_steps.push_back(step);
  state_->watched.store(true);
  return step;
}

bool DirectSession::is_step_under_way() const {
  for (size_t i = 1; i < state_->run_counts.size(); i += 2) {
    if (state_->run_counts[i].running.load() > 0) return true;
  }
  return false;
}

uint64_t DirectSession::steps_ended() const {
  uint64_t ended = 0;
  for (size_t i = 1; i < state_->run_counts.size(); i += 2) {
    ended += state_->run_counts[i].ended.load(std::memory_order_relaxed);
  }
  return ended;
}

void DirectSession::close_before(const Deadline* deadline) {
  if (state_->closed.exchange(true)) return;
  state_->ended.store(true);
  state_->step_fetches.withdraw_all();
  SessionState& session = *state_->session;
  if (state_->owns_task) session.variables().snapshot_limit().close();
  session.cancellation().cancel("the session was closed (Session::Close)");
  if (!wait_for_runs(deadline) || !state_->owns_variables()) return;
  session.variables().clear();
  session.host_resources().clear();
}

bool DirectSession::wait_for_runs(const Deadline* deadline) {
  constexpr Seconds kLongestStep{600};
  constexpr Seconds kCancelledStep{1};  // time enough for one that only waited, even if the deadline is over
  Clock& clock = Clock::real();
  const Seconds start = clock.now();
  const auto half = half_time(deadline, clock, kCancelledStep);
  const auto left = [&] { return std::min(start + kLongestStep, half().value_or(start + kLongestStep)) - clock.now(); };
  const auto busy = [](const State::RunCount& count) { return count.running.load() > 0; };
  const Deadline::Wait wait(deadline, state_->idle_mutex, state_->idle);
  const MutexLock lock(state_->idle_mutex);
  while (std::any_of(state_->run_counts.begin(), state_->run_counts.end(), busy)) {
    if (left() <= Seconds{0}) {
      log_error("a session was closed, but one of its runs has not ended after {:.3g} s; its memory is not freed",
                (clock.now() - start).count());
      return false;
    }
    state_->idle.wait_for(state_->idle_mutex, left());  // wait: for the last run's end, for kLongestStep or less
  }
  return true;
}

std::vector<Tensor> DirectSession::do_run(const Request& request, std::span<const Tensor* const> feed_values,
                                          proto::RunMetadata* metadata) {
  std::shared_ptr<DirectRun> run;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    auto& compiled = compiled_[key_of(request)];
    if (!compiled) {
      const Running running(*state_);
      compiled = std::make_shared<DirectRun>(state_, request);
    }
    run = compiled;
  }
  const Seconds timeout = request.options.timeout.count() > 0 ? request.options.timeout : state_->default_timeout;
  const bool traced = metadata != nullptr && request.options.trace_level != TraceLevel::kNoTrace;
  std::vector<Tensor> results;
  StepTrace trace;
  run->call_within(feed_values, timeout, request.options.cancellation, &results, traced ? &trace : nullptr);
  if (metadata == nullptr) return results;
  trace.devices = run->devices();
  *metadata = describe_run(graph(), request, trace);
  return results;
}

std::shared_ptr<CompiledRun> DirectSession::do_make_callable(const Request& request) {
  const Running running(*state_);
  return std::make_shared<DirectRun>(state_, request);
}

std::unique_ptr<Session> new_direct_session(const std::string& target, Graph& graph, const SessionOptions& options) {
  need_this_process(target);
  check_options_in_process(options);
  return std::make_unique<DirectSession>(graph, options);
}

void reset_direct_sessions(const std::string& target, const std::vector<std::string>& containers) {
  need_this_process(target);
  for (const auto& known : all_local_tasks()) {
    if (const std::shared_ptr<TaskResources> task = known.lock()) task->reset(containers);
  }
}

}  // namespace longhaul
