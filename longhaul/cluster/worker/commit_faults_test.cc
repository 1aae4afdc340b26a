// Steps of two tasks and their commits, with each fault in each of their messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "longhaul/cluster/worker/worker_fixture.h"

namespace longhaul {
namespace {

using Outcome = ScriptedMaster::Outcome;

constexpr Seconds kLongestScript{150};  // connecting, steps in doubt, and calls that are repeated

// What a master does with a session: initialises, makes a step, closes; and what came of it.
struct ScriptedRun {
  int committed = 0, unknown = 0;  // whether the step was
  bool is_complete = false;
};

ScriptedRun run_script(ScriptedMaster& master, const TwoTaskModel& model) {
  ScriptedRun run;
  if (!master.open()) return run;
  const auto init = master.add(model.divide({model.a.initializer(), model.b.initializer()}));
  const auto step = master.add(model.divide({model.next_a, model.next_b}));
  if (!init || !step || master.step(*init) != Outcome::kCommitted) return run;
  const Outcome outcome = master.step(*step);
  run.committed = outcome == Outcome::kCommitted ? 1 : 0;
  run.unknown = outcome == Outcome::kNotKnown ? 1 : 0;
  run.is_complete = run.committed == 1;
  return run;
}

// Each committed step is in both variables once, or in none.
void expect_whole_steps(TwoTasks& tasks, const ScriptedRun& run) {
  const float a = tasks.ps()->value("a"), b = tasks.ps1()->value("b");
  if (tasks.any_was_killed()) return;  // its variables are gone
  EXPECT_EQ(a < 0, b < 0) << "initialised on one task only";
  if (a < 0) return;
  EXPECT_EQ(b, a * (a + 1) / 2);
  EXPECT_GE(a, static_cast<float>(run.committed));
  EXPECT_LE(a, static_cast<float>(run.committed + run.unknown));
  EXPECT_NO_THROW(tasks.ps()->resources->variables().check_consistent());
  EXPECT_NO_THROW(tasks.ps1()->resources->variables().check_consistent());
}

// A new master can go on as if nothing had been.
void expect_a_new_start(TwoTasks& tasks, const TwoTaskModel& model) {
  tasks.passes([] { return false; }, 9);  // bundles of steps that nobody began are dropped after 8 s
  const auto master = tasks.new_master("0123456789abcdef");
  const ScriptedRun run = run_script(*master, model);
  EXPECT_TRUE(run.is_complete);
  EXPECT_EQ(tasks.ps()->value("a"), 1);
  EXPECT_EQ(tasks.ps1()->value("b"), 1);
  master->close();
  EXPECT_TRUE(tasks.passes([&] { return !tasks.is_anything_left(); }, 10));
  for (const auto& process : {tasks.ps(), tasks.ps1()}) EXPECT_EQ(process->worker->counts().bundles, 0u);
}

size_t messages_of_script() {
  const TwoTaskModel model;
  TwoTasks tasks;
  const auto master = tasks.new_master();
  EXPECT_TRUE(run_script(*master, model).is_complete);
  master->close();
  EXPECT_TRUE(tasks.passes([&] { return !tasks.is_anything_left(); }, 10));
  return tasks.network().sent().size();
}

void expect_to_survive(const NetworkFault& fault) {
  SCOPED_TRACE(to_string(fault));
  const TwoTaskModel model;
  TwoTasks tasks({.exchange = {.unclaimed = Seconds{8}}});
  tasks.network().plan(fault);
  const Seconds began = tasks.clock().now();
  ScriptedRun run;
  {
    const auto master = tasks.new_master();
    run = run_script(*master, model);
  }
  EXPECT_TRUE(tasks.passes([&] { return !tasks.is_anything_left(); }, 200)) << "something is left";
  EXPECT_LE((tasks.clock().now() - began).count(), kLongestScript.count()) << "a wait has no bound";
  expect_whole_steps(tasks, run);
  if (fault.kind == NetworkFault::Kind::kDouble) {
    EXPECT_TRUE(run.is_complete) << "a doubled message changes nothing";
  }
  // One that has not been sent, for the threads may come in another order, would hit the new start.
  if (fault.message % 3 == 0 && tasks.network().sent().size() >= fault.message) expect_a_new_start(tasks, model);
}

// For `time`, where the fault takes some.
void expect_to_survive_all(NetworkFault::Kind kind, Seconds time) {
  const size_t messages = messages_of_script();
  EXPECT_GE(messages, 16u);
  for (size_t i = 1; i <= messages && !::testing::Test::HasFailure(); ++i) {
    expect_to_survive({.kind = kind, .message = i, .time = time});
  }
}

class CommitFaultsTest : public ::testing::TestWithParam<NetworkFault::Kind> {};

TEST_P(CommitFaultsTest, AStepIsMadeOnBothTasksOrOnNone) {
  expect_to_survive_all(GetParam(), Seconds{1});
}

INSTANTIATE_TEST_SUITE_P(Faults, CommitFaultsTest, ::testing::ValuesIn(all_network_faults()));

// Longer than it takes to lose a line.
class LongCommitFaultsTest : public ::testing::TestWithParam<NetworkFault::Kind> {};

TEST_P(LongCommitFaultsTest, AStepIsMadeOnBothTasksOrOnNone) {
  expect_to_survive_all(GetParam(), Seconds{5});
}

INSTANTIATE_TEST_SUITE_P(Faults, LongCommitFaultsTest,
                         ::testing::Values(NetworkFault::Kind::kDelay, NetworkFault::Kind::kCut,
                                           NetworkFault::Kind::kCutOneWay, NetworkFault::Kind::kKillSenderAfter,
                                           NetworkFault::Kind::kKillReceiverBefore));

}  // namespace
}  // namespace longhaul
