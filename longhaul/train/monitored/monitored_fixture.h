#pragma once

#include <functional>
#include <thread>

#include "longhaul/train/monitored/monitored_session.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A hook that writes down what it is told, and does what a test wants of it.
class RecordingHook : public SessionRunHook {
 public:
  explicit RecordingHook(std::vector<std::string>* calls = nullptr, std::string name = "")
      : calls_(calls), name_(std::move(name)) {}

  void begin(Graph& graph) override {
    note("begin");
    if (on_begin) on_begin(graph);
  }
  void after_create_session(Session& session, const Coordinator& coordinator) override {
    note("after_create_session");
    coord = coordinator;
    if (on_create) on_create(session);
  }
  const SessionRunArgs* before_run(SessionRunContext& context) override {
    note("before_run");
    if (on_before) on_before(context);
    return wants ? &*wants : nullptr;
  }
  void after_run(SessionRunContext& context, const SessionRunValues& values) override {
    note("after_run");
    results.assign(values.results.begin(), values.results.end());
    if (on_after) on_after(context, values);
  }
  void end(Session& session) override {
    note("end");
    if (on_end) on_end(session);
  }

  std::optional<SessionRunArgs> wants;
  std::function<void(Graph&)> on_begin;
  std::function<void(Session&)> on_create, on_end;
  std::function<void(SessionRunContext&)> on_before;
  std::function<void(SessionRunContext&, const SessionRunValues&)> on_after;

  Coordinator coord;            // of the session
  std::vector<Tensor> results;  // of the last run

 private:
  void note(const char* call) {
    if (calls_ != nullptr) calls_->push_back(name_ + call);
  }

  std::vector<std::string>* const calls_;
  const std::string name_;
};

// A model with a step counter and a training step, and sessions that interpret it, each with variables of its own. Time
// stands still; no restart waits.
class MonitoredFixture : public ::testing::Test {
 protected:
  MonitoredFixture() {
    install_session_factory([this](const std::string&, Graph& made_for, const SessionOptions&) {
      if (on_session) on_session();
      ++sessions;
      auto session = make_scripted_session(made_for);
      last_session = session.get();
      return session;
    });
    options.session_creator = std::make_shared<ChiefSessionCreator>(ChiefSessionCreatorOptions{
        .graph = &graph, .scaffold = scaffold, .checkpoint_dir = directory.path(), .coordinator = coordinator});
    options.restart.backoff = Seconds{0};
    options.coordinator = coordinator;
  }
  ~MonitoredFixture() override { install_session_factory(nullptr); }

  std::shared_ptr<RecordingHook> add_hook(const std::string& name = "") {
    auto hook = std::make_shared<RecordingHook>(&calls, name);
    options.hooks.push_back(hook);
    return hook;
  }
  // The program's own code as an operation of the graph.
  Operation code(std::function<void()> body) {
    return ops::host_function(root, {}, {}, [body](const std::vector<Tensor>&) {
      body();
      return std::vector<Tensor>();
    });
  }
  int64_t train_once(MonitoredSession& session) {
    session.run(train);
    return session.run(step).item<int64_t>();
  }
  // Reports an error from another thread, as one of the session's own would, and waits until it is known.
  static void report(const Coordinator& coord, std::function<void()> failure) {
    coord.start_thread("failing", std::move(failure));
    eventually([&] { return coord.should_stop(); });
  }
  template <typename Condition>
  static void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  Coordinator coordinator{{.clock = &clock}};  // the program's
  Graph graph;
  Scope root{graph};
  Variable step = ops::create_global_step(root);
  Operation train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
  std::shared_ptr<Scaffold> scaffold = std::make_shared<Scaffold>();
  std::vector<std::string> calls;  // of the hooks
  int sessions = 0;                // how many were made
  std::function<void()> on_session;
  testing::ScriptedSession* last_session = nullptr;
  MonitoredSessionOptions options;
};

}  // namespace longhaul
