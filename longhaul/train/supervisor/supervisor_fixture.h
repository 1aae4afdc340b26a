#pragma once

#include <thread>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A model with a variable, a step counter and a training step, and sessions that interpret it. Time stands still, so
// each service does its work once, unless a test moves it.
class SupervisorFixture : public ::testing::Test {
 protected:
  SupervisorFixture() {
    options = {.graph = &graph, .logdir = directory.path(), .clock = &clock};
    install_session_factory([this](const std::string& master, Graph& made_for, const SessionOptions& config) {
      auto session = make_scripted_session(made_for, server);
      last_session = session.get();
      last_master = master;
      last_config = config;
      return session;
    });
  }
  ~SupervisorFixture() override { install_session_factory(nullptr); }

  // A model with the step counter at `start`; `train` adds one.
  void add_step(int64_t start = 0) {
    const Output initial = ops::constant(root, Tensor::scalar(start), "start");
    step = ops::variable(root, "global_step", initial, {.trainable = false});
    train = ops::assign_add(root, step, ops::constant(root, int64_t{1})).op();
  }
  // A process that begins anew: nothing is left but the disk.
  void restart() { server = std::make_shared<testing::ScriptedSession::Variables>(); }

  // Until the services have done their first work: so many of them run snapshots.
  void wait_for_snapshots(int count) {
    eventually([&] { return last_session->snapshot_runs() >= count; });
  }
  template <typename Condition>
  void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }
  bool exists(const std::string& prefix) { return checkpoint_exists(FileSystem::real(), prefix); }

  std::vector<proto::Event> events() { return events_in_directory(directory.path()); }
  std::vector<std::string> described_events() { return describe(events()); }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  std::shared_ptr<testing::ScriptedSession::Variables> server = std::make_shared<testing::ScriptedSession::Variables>();
  testing::ScriptedSession* last_session = nullptr;
  std::string last_master;
  SessionOptions last_config;
  Graph graph;
  Scope root{graph};
  Variable step;
  Operation train;
  SupervisorOptions options;
};

}  // namespace longhaul
