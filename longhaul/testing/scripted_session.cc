#include "longhaul/testing/scripted_session.h"

#include <algorithm>

#include "longhaul/base/clock.h"
#include "longhaul/session/needed_operations.h"
#include "longhaul/session/step_trace.h"
#include "longhaul/testing/interpreter.h"

namespace longhaul::testing {
namespace {

bool writes_variable(const Session::Request& request) {
  std::vector<Operation> targets;
  for (const auto& target : request.fetches) targets.push_back(target.op);
  const std::vector<Operation> ops = needed_operations(targets);
  return std::any_of(ops.begin(), ops.end(), [](auto& op) { return (op.traits() & kWritesVariable) != 0; });
}

bool feeds_all(const Session::Request& request, const std::vector<Output>& fetches) {
  std::vector<Operation> targets;
  for (const Output& fetch : fetches) targets.push_back(fetch.op());
  for (const Operation& op : needed_operations(targets)) {
    if (op.type() == "Placeholder" &&
        std::find(request.feeds.begin(), request.feeds.end(), op.output()) == request.feeds.end()) {
      return false;
    }
  }
  return true;
}

ScriptedSession::Engine& engine() {
  static auto* const engine = new ScriptedSession::Engine;
  return *engine;
}

std::vector<Fetch> fetches_of(const Session::Request& request) {
  std::vector<Fetch> fetches;
  for (const Fetch::Target& target : request.fetches) {
    fetches.push_back(target.is_operation() ? Fetch(target.op) : Fetch(target.output()));
  }
  return fetches;
}

std::vector<Tensor> run_on_engine(Session& session, const Session::Request& request,
                                  std::span<const Tensor* const> feed_values, proto::RunMetadata* metadata) {
  Feeds feeds;
  for (size_t i = 0; i < request.feeds.size(); ++i) feeds.emplace_back(request.feeds[i], *feed_values[i]);
  return session.run(fetches_of(request), feeds, request.options, metadata);
}

}  // namespace

void ScriptedSession::run_on(Engine chosen) {
  engine() = std::move(chosen);
}

bool ScriptedSession::runs_on_engine() {
  return engine().new_session != nullptr;
}

ScriptedSession::Variables::Variables() : server(runs_on_engine() ? engine().new_server() : nullptr) {}

ScriptedSession::ScriptedSession(Graph& graph, std::shared_ptr<Variables> variables)
    : Session(graph),
      variables_(std::move(variables)),
      engine_(runs_on_engine() ? engine().new_session(graph, variables_->server) : nullptr) {}

ScriptedSession::~ScriptedSession() = default;

// Counts a snapshot run when it has ended: whoever sees the count knows that its values have been read.
struct ScriptedSession::CountedSnapshot {
  CountedSnapshot(ScriptedSession& session, const Request& request) : session(session), request(request) {}
  CountedSnapshot(const CountedSnapshot&) = delete;
  CountedSnapshot& operator=(const CountedSnapshot&) = delete;
  ~CountedSnapshot() {
    MutexLock lock(session.mutex_);
    if (request.options.snapshot) ++session.snapshot_runs_;
  }
  ScriptedSession& session;
  const Request& request;
};

struct ScriptedSession::Compiled : CompiledRun {
  Compiled(ScriptedSession& session, Request request) : session(session), request(std::move(request)) {}
  void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) override {
    for (Tensor& value : session.do_run(request, feeds, /*metadata=*/nullptr)) results->push_back(std::move(value));
  }
  ScriptedSession& session;
  const Request request;
};

struct ScriptedSession::CompiledByEngine : CompiledRun {
  CompiledByEngine(ScriptedSession& session, Request request)
      : session(session),
        request(std::move(request)),
        run(session.engine_->make_callable(fetches_of(this->request),
                                           {this->request.feeds.begin(), this->request.feeds.end()})) {}
  void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) override {
    session.begin_run(request);
    const CountedSnapshot counted(session, request);
    run.call(feeds, results);
  }
  ScriptedSession& session;
  const Request request;
  const Callable run;
};

std::shared_ptr<CompiledRun> ScriptedSession::do_make_callable(const Request& request) {
  if (engine_) return std::make_shared<CompiledByEngine>(*this, request);
  return std::make_shared<Compiled>(*this, request);
}

int ScriptedSession::begin_run(const Request& request) {
  int number = 0;
  {
    MutexLock lock(mutex_);
    if (closed_) throw FailedPreconditionError("Attempted to use a closed Session.");
    number = runs_++;
  }
  if (hook_) hook_(number, request);
  return number;
}

StepFetch ScriptedSession::take_step_fetch(const Request& request) {
  MutexLock lock(mutex_);
  if (!step_fetch_.done || !writes_variable(request) || !feeds_all(request, step_fetch_.fetches)) return {};
  return std::exchange(step_fetch_, StepFetch{});
}

std::vector<Tensor> ScriptedSession::do_run(const Request& request, std::span<const Tensor* const> feed_values,
                                            proto::RunMetadata* metadata) {
  const int number = begin_run(request);
  const CountedSnapshot counted(*this, request);
  if (engine_) return run_on_engine(*engine_, request, feed_values, metadata);
  return interpret(number, request, feed_values, metadata);
}

std::vector<Tensor> ScriptedSession::interpret(int number, const Request& request,
                                               std::span<const Tensor* const> feed_values,
                                               proto::RunMetadata* metadata) {
  const StepFetch step_fetch = take_step_fetch(request);
  std::vector<Tensor> results, along;
  StepTrace trace{.wall_time = 1.6e9 + number};
  try {
    const Seconds timeout = request.options.timeout;
    const Seconds deadline = timeout.count() > 0 ? Clock::real().now() + timeout : Seconds{0};
    Cancellation of_run(&cancellation_, request.options.cancellation);
    Interpreter interpreter(handlers_, *variables_, {deadline, &of_run}, trace);
    for (size_t i = 0; i < request.feeds.size(); ++i) interpreter.feed(request.feeds[i], *feed_values[i]);
    for (const Fetch::Target& target : request.fetches) results.push_back(interpreter.fetch(target));
    for (const Output& output : step_fetch.fetches) along.push_back(interpreter.fetch({output.op(), output.index()}));
  } catch (...) {
    if (step_fetch.done) step_fetch.done({}, std::current_exception());
    throw;
  }
  if (step_fetch.done) step_fetch.done(std::move(along), nullptr);
  if (metadata != nullptr) *metadata = describe_run(graph(), request, trace);
  return results;
}

int ScriptedSession::runs() const {
  MutexLock lock(mutex_);
  return runs_;
}

int ScriptedSession::snapshot_runs() const {
  MutexLock lock(mutex_);
  return snapshot_runs_;
}

bool ScriptedSession::closed() const {
  MutexLock lock(mutex_);
  return closed_;
}

bool ScriptedSession::step_fetch_pending() const {
  MutexLock lock(mutex_);
  return step_fetch_.done != nullptr;
}

void ScriptedSession::request_step_fetch(StepFetch request) {
  int number = 0;
  {
    MutexLock lock(mutex_);
    step_fetch_ = request;
    number = ++step_fetches_;
  }
  if (!engine_) return;
  engine_->capabilities().step_fetching->request_step_fetch(
      {request.fetches,
       [this, number, done = request.done](std::vector<Tensor> values, std::exception_ptr error) {
         {
           MutexLock lock(mutex_);
           if (number == step_fetches_) step_fetch_ = {};
         }
         done(std::move(values), error);
       },
       request.requester});
}

void ScriptedSession::withdraw_step_fetch(const void* requester) {
  if (engine_) engine_->capabilities().step_fetching->withdraw_step_fetch(requester);
  MutexLock lock(mutex_);
  if (step_fetch_.requester == requester) step_fetch_ = {};
}

SessionCapabilities ScriptedSession::capabilities() {
  SessionCapabilities capabilities = engine_ ? engine_->capabilities() : SessionCapabilities{};
  const bool can_fetch = !engine_ || capabilities.step_fetching != nullptr;
  capabilities.step_fetching = can_fetch ? this : nullptr;
  return capabilities;
}

void ScriptedSession::close() {
  cancellation_.cancel("the session was closed (Session::Close)");
  {
    MutexLock lock(mutex_);
    closed_ = true;
    step_fetch_ = {};
  }
  if (engine_) engine_->close();
}

}  // namespace longhaul::testing
