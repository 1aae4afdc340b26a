// A training that a scheduler ends, as a process: signals, exit statuses, and what is on the disk afterwards.
#include "tests/preemption_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

TEST_P(PreemptionProcessTest, AStopSignalEndsItWithACheckpointOfTheStepAndTheStatusThatSaysSo) {
  const auto training = start();
  wait_for_checkpoint_after(-1);
  training->send(SIGUSR1);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  const int64_t step = number_after("ends at step ", training->output());
  EXPECT_EQ(newest_step(), step);
  expect_whole(step);
}

TEST_P(PreemptionProcessTest, ASaveSignalTakesACheckpointAndTheTrainingGoesOn) {
  const auto training = start();
  int64_t step = wait_for_checkpoint_after(-1);
  for (int i = 0; i < 2; ++i) {
    training->send(SIGUSR2);
    step = wait_for_checkpoint_after(step);
    expect_whole(step);
  }
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(50)));
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted);
  EXPECT_GT(number_after("ends at step ", training->output()), step);
}

TEST_P(PreemptionProcessTest, TimeoutSendsItsSignalTwiceAndTheCheckpointIsTaken) {
  const auto training = start({"/usr/bin/timeout", "--preserve-status", "60"});
  wait_for_checkpoint_after(-1);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  EXPECT_EQ(newest_step(), number_after("ends at step ", training->output()));
}

TEST_P(PreemptionProcessTest, ASecondSignalEndsItAtOnceAndTheNextStartRecovers) {
  const auto training = start({kSlowSaves});
  const int64_t first = wait_for_checkpoint_after(-1);
  training->send(SIGUSR2);
  const int64_t saved = wait_for_checkpoint_after(first);
  ASSERT_TRUE(make_steps(*training));
  training->send(SIGTERM);
  ASSERT_TRUE(soon([&] { return is_saving(); }));
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(200)));
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), 128 + SIGTERM);
  EXPECT_EQ(newest_step(), saved);
  expect_whole(saved);
  expect_to_go_on_from(saved);
  EXPECT_FALSE(is_saving()) << "debris";
}

TEST_P(PreemptionProcessTest, WithoutTimeForACheckpointItEndsAndSaysWhatIsLost) {
  const auto training = start({"LONGHAUL_PREEMPTION_GRACE=1.5", kSlowSaves});
  const int64_t saved = wait_for_checkpoint_after(-1);
  ASSERT_TRUE(make_steps(*training));
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted);
  EXPECT_EQ(newest_step(), saved);
  const int64_t step = number_after("ends at step ", training->output());
  EXPECT_THAT(training->errors(),
              HasSubstr("steps " + std::to_string(saved + 1) + " to " + std::to_string(step) + " are lost"));
  expect_to_go_on_from(saved);
}

TEST_P(PreemptionProcessTest, AClosedTerminalIsAStop) {
  const auto training = start();
  wait_for_checkpoint_after(-1);
  training->send(SIGHUP);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  const int64_t step = number_after("ends at step ", training->output());
  EXPECT_EQ(newest_step(), step);
  expect_whole(step);
}

// A shell sends it to its jobs as it ends, and then the kernel does.
TEST_P(PreemptionProcessTest, AHangUpThatComesAgainDoesNotCutTheLastCheckpointShort) {
  const auto training = start({kSlowSaves});
  wait_for_checkpoint_after(-1);
  ASSERT_TRUE(make_steps(*training));
  training->send(SIGHUP);
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(300)));
  training->send(SIGHUP);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  EXPECT_EQ(newest_step(), number_after("ends at step ", training->output()));
}

TEST_P(PreemptionProcessTest, UnderNohupAHangUpIsNone) {
  const auto training = start({}, {"/usr/bin/nohup"});
  wait_for_checkpoint_after(-1);
  training->send(SIGHUP);
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(500)));
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted);
}

INSTANTIATE_TEST_SUITE_P(, PreemptionProcessTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul
