// The libtorch example as its user meets it: killed at random moments, it ends where an undisturbed run ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <random>

#include "examples/idx_dataset.h"
#include "longhaul/checkpoint/bundle_reader.h"
#include "longhaul/checkpoint/latest_checkpoint.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Process;

class PlainLibtorchTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!fs::exists(examples::kFashionMnistDirectory)) GTEST_SKIP() << "no data: apt-get install dataset-fashion-mnist";
  }

  std::unique_ptr<Process> start(const std::string& logdir, int steps) {
    return std::make_unique<Process>(
        std::vector<std::string>{PLAIN_LIBTORCH_PROGRAM, logdir, std::to_string(steps), "0.2"},
        directory_.file("output"));
  }

  static std::string newest_checkpoint(const std::string& logdir) {
    return newest_whole_checkpoint(FileSystem::real(), logdir, "model.ckpt").prefix.value_or("");
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
    fs::remove(killed + "/run.journal");  // two kills before the first step have the newest checkpoint passed over
  }
  const std::string newest = newest_checkpoint(killed);
  ASSERT_FALSE(newest.empty()) << "nothing was saved before the kills";
  auto last = start(killed, kSteps);
  ASSERT_EQ(last->wait(), 0) << last->errors();
  EXPECT_THAT(last->output(), HasSubstr("starts at step " + newest.substr(newest.rfind('-') + 1) + "\n"));
  expect_same_tensors(newest_checkpoint(killed), newest_checkpoint(undisturbed));
  EXPECT_EQ(BundleReader(FileSystem::real(), newest_checkpoint(killed)).read("global_step").item<int64_t>(), kSteps);
}

}  // namespace
}  // namespace longhaul
