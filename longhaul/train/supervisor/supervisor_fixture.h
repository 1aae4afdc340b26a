#pragma once

#include <thread>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/ops/summary_ops.h"
#include "longhaul/testing/threads_end_fixture.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/supervisor/supervisor.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {

// A model with a variable, a step counter and a training step, and sessions that interpret it. Time stands still, so
// each service does its work once, unless a test moves it.
class SupervisorFixture : public ::testing::Test {
 protected:
  SupervisorFixture();
  ~SupervisorFixture() override;

  // A model with the step counter at `start`; `train` adds one.
  void add_step(int64_t start = 0);
  // A process that begins anew: nothing is left but the disk.
  void restart();

  // Until the services have done their first work: so many of them run snapshots.
  void wait_for_snapshots(int count);
  template <typename Condition>
  void eventually(Condition&& condition) {
    const Seconds deadline = Clock::real().now() + Seconds{20};
    while (!condition() && Clock::real().now() < deadline) std::this_thread::yield();
    EXPECT_TRUE(condition());
  }
  bool exists(const std::string& prefix);

  std::vector<proto::Event> events();
  std::vector<std::string> described_events();

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
  const ThreadsEnd threads_end;
  SupervisorOptions options;
};

}  // namespace longhaul
