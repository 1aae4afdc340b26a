// A program with a Trainer's epochs and batches: killed inside its batches, and stopped at an epoch's last step, it
// ends with the bytes of an undisturbed run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <random>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/resume_check/resume_check.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::Process;

constexpr int kEpochs = 240, kBatches = 12;

class EpochsResumeTest : public ::testing::Test {
 protected:
  std::unique_ptr<Process> start(const std::string& name) {
    return std::make_unique<Process>(
        std::vector<std::string>{EPOCHS_PROGRAM, directory_.file(name), std::to_string(kEpochs)},
        directory_.file(name + ".output"));
  }
  std::string newest(const std::string& name) const {
    return newest_intact_checkpoint(FileSystem::real(), directory_.file(name), "model.ckpt").prefix.value_or("");
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(EpochsResumeTest, KilledInsideItsBatchesItEndsWithTheSameBytes) {
  ASSERT_EQ(start("whole")->wait(), 0);
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  int kills_within_an_epoch = 0;
  for (int starts = 0; starts < 40 && kills_within_an_epoch < 4; ++starts) {
    auto victim = start("killed");
    ASSERT_TRUE(victim->prints("starts at step")) << victim->errors();
    victim->runs_for(std::chrono::milliseconds(std::uniform_int_distribution<>(100, 400)(random)));
    victim->send(SIGKILL);
    if (victim->wait() == 0) break;  // it was over
    const std::string prefix = newest("killed");
    if (!prefix.empty() && std::stoll(prefix.substr(prefix.rfind('-') + 1)) % kBatches != 0) ++kills_within_an_epoch;
  }
  EXPECT_GT(kills_within_an_epoch, 0);
  auto last = start("killed");
  ASSERT_EQ(last->wait(), 0) << last->errors();
  const BundleReader expected(FileSystem::real(), newest("whole")), found(FileSystem::real(), newest("killed"));
  EXPECT_EQ(found.read("global_step").item<int64_t>(), kEpochs * kBatches);
  ASSERT_EQ(found.keys(), expected.keys());
  for (const std::string& key : found.keys()) EXPECT_TRUE(identical(found.read(key), expected.read(key))) << key;
}

TEST_F(EpochsResumeTest, TheCheckOfUsersStopsItAtAnEpochsLastStep) {
  std::vector<std::string> lines;
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE(seed);
  const ResumeCheckResult result = check_resume({.command = {EPOCHS_PROGRAM, "{}", std::to_string(kEpochs)},
                                                 .kills = 0,
                                                 .stops = 2,
                                                 .seed = seed,
                                                 .say = [&lines](const std::string& line) { lines.push_back(line); }});
  EXPECT_TRUE(result.is_same) << result.text << ::testing::PrintToString(lines);
  EXPECT_THAT(lines, Contains(HasSubstr("stopped: that is the last step of an epoch")));
}

}  // namespace
}  // namespace longhaul
