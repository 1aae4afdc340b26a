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

}  // namespace

struct ScriptedSession::Compiled : CompiledRun {
  Compiled(ScriptedSession& session, Request request) : session(session), request(std::move(request)) {}
  void call(std::span<const Tensor* const> feeds, std::vector<Tensor>* results) override {
    for (Tensor& value : session.do_run(request, feeds, /*metadata=*/nullptr)) results->push_back(std::move(value));
  }
  ScriptedSession& session;
  const Request request;
};

std::shared_ptr<CompiledRun> ScriptedSession::do_make_callable(const Request& request) {
  return std::make_shared<Compiled>(*this, request);
}

int ScriptedSession::count_run(const Request& request) {
  MutexLock lock(mutex_);
  if (closed_) throw FailedPreconditionError("Attempted to use a closed Session.");
  if (request.options.snapshot) ++snapshot_runs_;
  return runs_++;
}

StepFetch ScriptedSession::take_step_fetch(const Request& request) {
  MutexLock lock(mutex_);
  if (!step_fetch_.done || !writes_variable(request) || !feeds_all(request, step_fetch_.fetches)) return {};
  return std::exchange(step_fetch_, StepFetch{});
}

std::vector<Tensor> ScriptedSession::do_run(const Request& request, std::span<const Tensor* const> feed_values,
                                            proto::RunMetadata* metadata) {
  const int number = count_run(request);
  if (hook_) hook_(number, request);
  const StepFetch step_fetch = take_step_fetch(request);
  std::vector<Tensor> results, along;
  StepTrace trace{.wall_time = 1.6e9 + number};
  try {
    const Seconds timeout = request.options.timeout;
    const Seconds deadline = timeout.count() > 0 ? Clock::real().now() + timeout : Seconds{0};
    Interpreter interpreter(handlers_, *variables_, {deadline, &cancellation_}, trace);
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

void ScriptedSession::fetch_with_next_step(StepFetch request) {
  MutexLock lock(mutex_);
  step_fetch_ = std::move(request);
}

void ScriptedSession::withdraw_step_fetch() {
  MutexLock lock(mutex_);
  step_fetch_ = {};
}

void ScriptedSession::close() {
  cancellation_.cancel("the session was closed (Session::Close)");
  MutexLock lock(mutex_);
  closed_ = true;
  step_fetch_ = {};
}

}  // namespace longhaul::testing
