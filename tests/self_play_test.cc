// The self-play example as its user meets it: killed at random moments, it goes on, and without actors it ends where an
// undisturbed run ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <optional>
#include <random>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/checkpoint/directory/reader_notes.h"
#include "longhaul/resume_check/resume_check.h"
#include "longhaul/testing/temporary_directory.h"
#include "longhaul/train/onlookers/checkpoints_iterator.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using testing::Process;

class SelfPlayTest : public ::testing::Test {
 protected:
  std::unique_ptr<Process> start(int steps, int actors, double save_model_secs = 0.2) {
    return std::make_unique<Process>(
        std::vector<std::string>{SELF_PLAY_PROGRAM, "--logdir=" + logdir(), "--steps=" + std::to_string(steps),
                                 "--actors=" + std::to_string(actors),
                                 "--save_model_secs=" + std::to_string(save_model_secs)},
        directory_.file("output"));
  }
  std::string logdir() const { return directory_.file("run"); }
  std::string newest_checkpoint() const {
    return newest_intact_checkpoint(FileSystem::real(), logdir(), "model.ckpt").prefix.value_or("");
  }
  // What the newest checkpoint has, as it prints at its start.
  std::string expected_start() const {
    const BundleReader checkpoint(FileSystem::real(), newest_checkpoint());
    return "starts at step " + std::to_string(checkpoint.read("global_step").item<int64_t>()) + " with " +
           std::to_string(checkpoint.read("kept/games").item<int64_t>()) + " games, " +
           std::to_string(checkpoint.read("kept/ratings").num_elements()) + " champions\n";
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(SelfPlayTest, WithActorsItGoesOnAfterEachKillFromTheNewestCheckpoint) {
  std::mt19937 random(std::random_device{}());
  auto first = start(1'000'000, 2);
  ASSERT_TRUE(first->prints("starts at step 0 with 0 games, 1 champions\n")) << first->errors();
  for (int kill = 0; kill < 4; ++kill) {
    if (kill > 0) {
      first = start(1'000'000, 2);
      ASSERT_TRUE(first->prints("starts at step")) << first->errors();
      EXPECT_THAT(first->output(), HasSubstr(expected_start()));
    }
    EXPECT_TRUE(first->prints("gate at step")) << first->errors();
    first->runs_for(std::chrono::milliseconds(std::uniform_int_distribution<>(300, 1000)(random)));
    first->send(SIGKILL);
    first->wait();
    ASSERT_FALSE(newest_checkpoint().empty());
  }
  const std::string start_line = expected_start();
  const int64_t step = BundleReader(FileSystem::real(), newest_checkpoint()).read("global_step").item<int64_t>();
  auto last = start(static_cast<int>(step) + 100, 2);
  EXPECT_EQ(last->wait(), 0) << last->errors();
  EXPECT_THAT(last->output(), HasSubstr(start_line));
  EXPECT_THAT(last->output(), HasSubstr("done games="));
}

TEST_F(SelfPlayTest, ASignalStopsItWithItsActors) {
  auto training = start(1'000'000, 3);
  ASSERT_TRUE(training->prints("gate at step")) << training->errors();
  training->send(SIGTERM);
  EXPECT_EQ(training->wait(), 75) << training->errors();
  auto again = start(0, 3);
  EXPECT_EQ(again->wait(), 0) << again->errors();
  EXPECT_THAT(again->output(), HasSubstr(expected_start()));
}

TEST_F(SelfPlayTest, WithoutActorsItResumesToTheSameBytes) {
  std::vector<std::string> lines;
  std::optional<ResumeCheckResult> result;
  for (int attempt = 0; attempt < 5 && !result; ++attempt) {
    try {
      result = check_resume(
          {.command = {SELF_PLAY_PROGRAM, "--logdir={}", "--actors=0", "--steps=4000", "--save_model_secs=0.2"},
           .kills = 2,
           .stops = 1,
           .seed = std::random_device{}(),
           .say = [&lines](const std::string& line) { lines.push_back(line); }});
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr("no disturbance came"));
    }
  }
  ASSERT_TRUE(result);
  EXPECT_TRUE(result->is_same) << result->text << ::testing::PrintToString(lines);
}

// An evaluator in this process follows the training in another, which keeps one checkpoint only when it is told so.
TEST_F(SelfPlayTest, ItsCheckpointsCanBeFollowed) {
  auto training = start(3000, 1, 0.1);
  int followed = 0;
  int64_t step = -1;
  CheckpointsIterator checkpoints = checkpoints_iterator(logdir(), {.chief_timeout = Seconds{60}});
  for (const NewCheckpoint& checkpoint : checkpoints) {
    EXPECT_TRUE(checkpoint.is_pinned);
    const BundleReader reader(FileSystem::real(), checkpoint);
    EXPECT_EQ(reader.read("global_step").item<int64_t>(), checkpoint.step);
    EXPECT_TRUE(reader.verify().empty());
    EXPECT_GE(*checkpoint.step, step);
    step = *checkpoint.step;
    ++followed;
  }
  EXPECT_EQ(checkpoints.ended_by(), IterationEnd::kTrainingEnded);
  EXPECT_EQ(training->wait(), 0) << training->errors();
  EXPECT_EQ(step, 3000);
  EXPECT_GT(followed, 1);
}

}  // namespace
}  // namespace longhaul
