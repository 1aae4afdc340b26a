#pragma once

#include <functional>
#include <thread>

#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/monitored/monitored_session.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A hook that writes down what it is told, and does what a test wants of it.
class RecordingHook : public SessionRunHook {
 public:
  explicit RecordingHook(std::vector<std::string>* calls = nullptr, std::string name = "");
  ~RecordingHook() override;

  void begin(Graph& graph) override;
  void after_create_session(Session& session, const Coordinator& coordinator) override;
  const SessionRunArgs* before_run(SessionRunContext& context) override;
  void after_run(SessionRunContext& context, const SessionRunValues& values) override;
  void end(Session& session) override;

  std::optional<SessionRunArgs> wants;
  std::function<void(Graph&)> on_begin;
  std::function<void(Session&)> on_create, on_end;
  std::function<void(SessionRunContext&)> on_before;
  std::function<void(SessionRunContext&, const SessionRunValues&)> on_after;

  Coordinator coord;            // of the session
  std::vector<Tensor> results;  // of the last run

 private:
  void note(const char* call);

  std::vector<std::string>* const calls_;
  const std::string name_;
};

// A model with a step counter and a training step, and sessions that interpret it, each with variables of its own. Time
// stands still; no restart waits.
class MonitoredFixture : public ::testing::Test {
 protected:
  MonitoredFixture();
  ~MonitoredFixture() override;

  std::shared_ptr<RecordingHook> add_hook(const std::string& name = "");
  // The program's own code as an operation of the graph.
  Operation code(std::function<void()> body);
  int64_t train_once(MonitoredSession& session);
  // Reports an error from another thread, as one of the session's own would, and waits until it is known.
  static void report(const Coordinator& coord, std::function<void()> failure);
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
  const ThreadsEnd threads_end;
  MonitoredSessionOptions options;
};

}  // namespace longhaul
