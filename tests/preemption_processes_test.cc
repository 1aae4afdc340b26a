// A training that a scheduler ends, as a process: signals, exit statuses, and what is on the disk afterwards.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/checkpoint_files.h"
#include "longhaul/checkpoint/latest_checkpoint.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Process;

constexpr int kPreempted = 75;
constexpr char kSlow[] = "700000";  // bytes in a second: a checkpoint, of 2 MiB, takes three

class PreemptionProcessTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Process> start(std::vector<std::string> environment = {}, const std::string& bytes_per_second = "0") {
    std::vector<std::string> command{"/usr/bin/env", "-u", "LONGHAUL_PREEMPTION_GRACE", "-u", "SLURM_JOB_END_TIME"};
    command.insert(command.end(), environment.begin(), environment.end());
    command.insert(command.end(), {PREEMPTION_PROGRAM, GetParam(), logdir(), bytes_per_second});
    auto training = std::make_unique<Process>(command, directory_.file("output"));
    EXPECT_TRUE(training->prints("begins at step")) << training->errors();
    return training;
  }
  std::string logdir() const { return directory_.file("run"); }

  int64_t newest_step() const {
    const auto newest = newest_whole_checkpoint(FileSystem::real(), logdir(), "model.ckpt").prefix;
    return newest ? split_step(*newest).step.value() : -1;
  }
  // Until there is a checkpoint of a step after this one; its step.
  int64_t wait_for_checkpoint_after(int64_t step) const {
    int64_t newest = -1;
    EXPECT_TRUE(soon([&] { return (newest = newest_step()) > step; }));
    return newest;
  }
  // After a checkpoint, so that another one is due at the end.
  bool make_steps(Process& training) const {
    return soon([&] { return !is_saving(); }) && training.runs_for(std::chrono::milliseconds(300));
  }
  bool is_saving() const {
    for (const auto& entry : fs::directory_iterator(logdir())) {
      if (entry.path().string().find(".tempstate") != std::string::npos) return true;
    }
    return false;
  }
  template <typename Condition>
  static bool soon(Condition&& condition) {
    for (int i = 0; i < 6000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  static int64_t number_after(const std::string& words, const std::string& text) {
    const size_t at = text.find(words);
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + words.size()));
  }
  // That checkpoint is of one moment between two steps.
  void expect_whole(int64_t step) const {
    const BundleReader reader(FileSystem::real(), logdir() + "/model.ckpt-" + std::to_string(step));
    EXPECT_EQ(reader.read("global_step").item<int64_t>(), step);
    const Tensor weights = reader.read("weights");
    for (const float weight : weights.flat<float>()) ASSERT_EQ(weight, static_cast<float>(step));
  }
  void expect_to_go_on_from(int64_t step) {
    const auto again = start();
    EXPECT_EQ(number_after("begins at step ", again->output()), step);
    again->send(SIGTERM);
    EXPECT_EQ(again->wait(), kPreempted) << again->errors();
  }

  const testing::TemporaryDirectory directory_;
};

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
  const auto training = start({}, kSlow);
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
  const auto training = start({"LONGHAUL_PREEMPTION_GRACE=1.5"}, kSlow);
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

INSTANTIATE_TEST_SUITE_P(, PreemptionProcessTest, ::testing::Values("supervisor", "monitored"),
                         [](const auto& kind) { return kind.param; });

}  // namespace
}  // namespace longhaul
