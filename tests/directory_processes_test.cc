// Trainings as processes whose directory goes away and comes back, and whose saver leaves out a variable.
#include <fmt/format.h>

#include "tests/preemption_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DirectoryAwayProcessTest : public PreemptionProcessTest {
 protected:
  bool is_there() const { return std::filesystem::exists(std::filesystem::symlink_status(logdir())); }
  // And waits until a save has found it so.
  void take_away_from(Process& training) {
    std::filesystem::rename(logdir(), logdir() + ".away");
    training.send(SIGUSR2);
    EXPECT_TRUE(soon([&] { return training.errors().find("the directory is gone") != std::string::npos; }))
        << training.errors();
  }
  void bring_back() const { std::filesystem::rename(logdir() + ".away", logdir()); }
};

TEST_P(DirectoryAwayProcessTest, ItGoesOnAndSavesWhenItIsBack) {
  const auto training = start();
  const int64_t first = wait_for_checkpoint_after(-1);
  ASSERT_TRUE(make_steps(*training));
  take_away_from(*training);
  EXPECT_TRUE(training->runs_for(std::chrono::milliseconds(500))) << training->errors();
  EXPECT_FALSE(is_there()) << "it was made again";
  bring_back();
  const int64_t second = wait_for_checkpoint_after(first);
  expect_whole(second);
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), kPreempted) << training->errors();
  EXPECT_EQ(newest_step(), number_after("ends at step ", training->output()));
  expect_to_go_on_from(newest_step());
}

TEST_P(DirectoryAwayProcessTest, AKillMeanwhileLosesWhatWasNotSavedAndNoMore) {
  const auto training = start();
  const int64_t first = wait_for_checkpoint_after(-1);
  ASSERT_TRUE(make_steps(*training));
  take_away_from(*training);
  training->send(SIGKILL);
  training->wait();
  EXPECT_FALSE(is_there()) << "it was made again";
  bring_back();
  expect_to_go_on_from(first);
}

class LeftOutProcessTest : public PreemptionProcessTest {
 protected:
  // Two checkpoints, and steps after them; the step of the second.
  int64_t train_and_kill(const Words& environment) {
    const int64_t before = newest_step();
    const auto training = start(environment);
    int64_t saved = before < 0 ? wait_for_checkpoint_after(-1) : before;
    EXPECT_TRUE(make_steps(*training));
    training->send(SIGUSR2);
    saved = wait_for_checkpoint_after(saved);
    EXPECT_TRUE(make_steps(*training));
    training->send(SIGKILL);
    EXPECT_EQ(training->wait(), 128 + SIGKILL);
    said_ = training->errors();
    return saved;
  }

  std::string said_;
};

TEST_P(LeftOutProcessTest, WithoutARemedyTheNextStartSaysSoAndKeepsTheCheckpoint) {
  const int64_t saved = train_and_kill({"LEAVES_OUT=warned"});
  EXPECT_THAT(said_, HasSubstr("the saver does not save 1 of the global variables: left_out"));
  const auto again = launch({"LEAVES_OUT=warned"});
  EXPECT_EQ(again->wait(), 1) << again->output();
  EXPECT_THAT(again->errors(), AllOf(HasSubstr("did not make model ready"), HasSubstr("left_out")));
  EXPECT_EQ(newest_step(), saved);
  expect_whole(saved);
}

TEST_P(LeftOutProcessTest, WithInitializeMissingItGoesOnAndThatOneBeginsAnew) {
  for (int64_t saved = 0, i = 0; i < 2; ++i) {
    saved = train_and_kill({"LEAVES_OUT=initialized"});
    const auto again = start({"LEAVES_OUT=initialized", "WAITS_BEFORE_STEPS=60000"});
    EXPECT_EQ(first_step(*again), saved);
    EXPECT_EQ(number_after("left out is ", again->output()), 100);
    again->send(SIGKILL);
    again->wait();
  }
}

INSTANTIATE_TEST_SUITE_P(, DirectoryAwayProcessTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });
INSTANTIATE_TEST_SUITE_P(, LeftOutProcessTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul
