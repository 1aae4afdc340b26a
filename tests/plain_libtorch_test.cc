// The libtorch example as its user meets it: killed at random moments, it ends where an undisturbed run ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <random>

#include "examples/idx_dataset.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/resume_check/resume_check.h"
#include "longhaul/testing/needs_fixture.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Process;

class PlainLibtorchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("fashion_mnist", fs::exists(examples::kFashionMnistDirectory),
                   "apt-get install dataset-fashion-mnist");
  }

  std::unique_ptr<Process> start_with(std::vector<std::string> flags) {
    flags.insert(flags.begin(), PLAIN_LIBTORCH_PROGRAM);
    return std::make_unique<Process>(flags, directory_.file("output"));
  }
  std::unique_ptr<Process> start(const std::string& logdir, int steps) {
    return start_with({"--logdir=" + logdir, "--steps=" + std::to_string(steps), "--save_model_secs=0.2"});
  }

  static std::string newest_checkpoint(const std::string& logdir) {
    return newest_intact_checkpoint(FileSystem::real(), logdir, "model.ckpt").prefix.value_or("");
  }

  static void expect_same_tensors(const std::string& a, const std::string& b) {
    const BundleReader of_a(FileSystem::real(), a), of_b(FileSystem::real(), b);
    ASSERT_EQ(of_a.keys(), of_b.keys());
    for (const std::string& key : of_a.keys()) EXPECT_TRUE(identical(of_a.read(key), of_b.read(key))) << key;
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(PlainLibtorchTest, GoesOnAfterKillsAndEndsWhereAnUndisturbedRunEnds) {
  constexpr int kSteps = 1200, kKills = 6;
  const std::string undisturbed = directory_.file("undisturbed"), killed = directory_.file("killed");
  auto whole = start(undisturbed, kSteps);
  ASSERT_EQ(whole->wait(), 0) << whole->errors();

  std::mt19937 random(std::random_device{}());
  for (int kill = 0; kill < kKills; ++kill) {
    auto victim = start(killed, kSteps);
    ASSERT_TRUE(victim->prints("starts at step")) << victim->errors();
    victim->runs_for(std::chrono::milliseconds(std::uniform_int_distribution<>(50, 1500)(random)));
    victim->send(SIGKILL);
    victim->wait();
  }
  const std::string newest = newest_checkpoint(killed);
  ASSERT_FALSE(newest.empty()) << "nothing was saved before the kills";
  auto last = start(killed, kSteps);
  ASSERT_EQ(last->wait(), 0) << last->errors();
  EXPECT_THAT(last->output(), HasSubstr("starts at step " + newest.substr(newest.rfind('-') + 1) + "\n"));
  expect_same_tensors(newest_checkpoint(killed), newest_checkpoint(undisturbed));
  EXPECT_EQ(BundleReader(FileSystem::real(), newest_checkpoint(killed)).read("global_step").item<int64_t>(), kSteps);
}

// On a machine whose other work ends in between, a run may be over before the moment at which it was to be disturbed,
// and the check says that it has seen nothing: it is made again.
TEST_F(PlainLibtorchTest, ResumesToTheSameBytesAsTheCheckOfUsersSees) {
  std::vector<std::string> lines;
  const auto check = [&lines] {
    return check_resume({.command = {PLAIN_LIBTORCH_PROGRAM, "--logdir={}", "--steps=2400", "--save_model_secs=0.2"},
                         .kills = 1,
                         .stops = 1,
                         .seed = std::random_device{}(),
                         .say = [&lines](const std::string& line) { lines.push_back(line); }});
  };
  std::optional<ResumeCheckResult> checked;
  for (int attempt = 0; attempt < 5 && !checked; ++attempt) {
    try {
      checked = check();
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), HasSubstr("no disturbance came"));
    }
  }
  ASSERT_TRUE(checked);
  const ResumeCheckResult& result = *checked;
  EXPECT_TRUE(result.is_same) << result.text << ::testing::PrintToString(lines);
  EXPECT_THAT(result.text, HasSubstr("stopped: the same bytes in all "));
}

class PlainLibtorchSignalTest : public PlainLibtorchTest, public ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(PlainLibtorchSignalTest, EndsAfterTheStepWithACheckpointAndItsStatus) {
  const auto [signal, status] = GetParam();
  const std::string logdir = directory_.file("run");
  auto training = start(logdir, 1000000);
  ASSERT_TRUE(training->prints("starts at step 0\n")) << training->errors();
  training->runs_for(std::chrono::milliseconds(300));
  training->send(signal);
  EXPECT_EQ(training->wait(), status) << training->errors();
  const std::string newest = newest_checkpoint(logdir);
  EXPECT_THAT(training->output(), Not(HasSubstr("done"))) << "the code behind the loop is for a complete run";
  auto again = start(logdir, 0);
  EXPECT_EQ(again->wait(), 0) << again->errors();
  EXPECT_THAT(again->output(), HasSubstr("starts at step " + newest.substr(newest.rfind('-') + 1) + "\n"));
}

INSTANTIATE_TEST_SUITE_P(, PlainLibtorchSignalTest,
                         ::testing::Values(std::pair(SIGINT, 0), std::pair(SIGTERM, 75), std::pair(SIGHUP, 75),
                                           std::pair(SIGUSR1, 75)));

TEST_F(PlainLibtorchTest, HelpSaysWhatThereIsAndTrainsNothing) {
  auto help = start_with({"--help"});
  EXPECT_EQ(help->wait(), 0) << help->errors();
  for (const char* text : {"--logdir", "--steps", "--save_model_secs", "75 stopped by SIGTERM"}) {
    EXPECT_THAT(help->output(), HasSubstr(text));
  }
  EXPECT_FALSE(fs::exists("--help")) << "it was taken for a directory";
}

TEST_F(PlainLibtorchTest, WrongUsageIsExitStatusTwo) {
  for (const char* flag : {"--no_such_flag=1", "--steps=many", "--save_model_secs=-1", "runs/somewhere"}) {
    auto training = start_with({flag});
    EXPECT_EQ(training->wait(), 2) << flag;
    EXPECT_THAT(training->errors(), HasSubstr(std::string(flag).substr(0, std::string(flag).find('=')))) << flag;
  }
}

TEST_F(PlainLibtorchTest, AnEmptyValueIsWrongUsageAndTakesNoOtherFlag) {
  const std::vector<std::vector<std::string>> usages{{"--logdir=", "--steps=50"},
                                                     {"--logdir", "--steps=50"},
                                                     {"--logdir", "", "--steps=50"},
                                                     {"--steps=50", "--logdir="}};
  for (const auto& flags : usages) {
    auto training = start_with(flags);
    EXPECT_EQ(training->wait(), 2) << flags[0];
    EXPECT_THAT(training->errors(), HasSubstr("--logdir: the value is empty"));
  }
  EXPECT_FALSE(fs::exists("--steps=50")) << "it was taken for a directory";
}

TEST_F(PlainLibtorchTest, ADirectoryThatCannotBeMadeIsExitStatusOneWithItsName) {
  std::ofstream(directory_.file("file")) << "not a directory";
  auto training = start(directory_.file("file") + "/run", 10);
  EXPECT_EQ(training->wait(), 1);
  EXPECT_THAT(training->errors(), HasSubstr(directory_.file("file") + "/run cannot be written to"));
}

TEST_F(PlainLibtorchTest, EndsWellWhereNobodyReadsWhatItPrints) {
  const std::string command = std::string("set -o pipefail; ") + PLAIN_LIBTORCH_PROGRAM +
                              " --logdir=" + directory_.file("unread") + " --steps=50 | head -1";
  Process program({"/bin/bash", "-c", command}, directory_.file("output"));
  EXPECT_EQ(program.wait(), 0) << program.errors();
}

}  // namespace
}  // namespace longhaul
