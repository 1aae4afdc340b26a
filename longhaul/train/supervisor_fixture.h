#pragma once

#include <fmt/format.h>

#include <thread>

#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/events/event_reader.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/train/supervisor.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// An event in a line: "graph", "START 123", "summary v=1 @5".
inline std::string describe(const proto::Event& event) {
  if (event.has_file_version()) return "version " + event.file_version();
  if (!event.graph_def().empty()) return "graph";
  if (!event.meta_graph_def().empty()) return "meta_graph";
  if (event.has_summary()) {
    const auto& value = event.summary().value(0);
    return fmt::format("summary {}={:g} @{}", value.tag(), value.simple_value(), event.step());
  }
  if (!event.has_session_log()) return "?";
  const std::string status = proto::SessionLog::SessionStatus_Name(event.session_log().status());
  return event.step() == 0 ? status : fmt::format("{} {}", status, event.step());
}

inline std::vector<proto::Event> events_in_file(const std::string& path) {
  std::vector<proto::Event> events;
  EventReader reader(path);
  while (const auto event = reader.next()) events.push_back(*event);
  return events;
}

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

  // All events of all files, in order.
  std::vector<proto::Event> events() {
    std::vector<proto::Event> all;
    for (const std::string& path : event_files(directory.path())) {
      for (auto& event : events_in_file(path)) all.push_back(std::move(event));
    }
    return all;
  }
  std::vector<std::string> described_events() {
    std::vector<std::string> lines;
    for (const proto::Event& event : events()) lines.push_back(describe(event));
    return lines;
  }

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
