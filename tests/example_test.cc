// The Fashion-MNIST training as its user meets it: a run to the end, kills at random moments, signals, and bad input.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <regex>

#include "examples/idx_dataset.h"
#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/testing/needs_fixture.h"
#include "tests/process.h"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using testing::Process;

class ExampleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    LONGHAUL_NEEDS("fashion_mnist", fs::exists(examples::kFashionMnistDirectory),
                   "apt-get install dataset-fashion-mnist");
    std::string name = (fs::temp_directory_path() / "longhaul_example.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    if (!directory_.empty()) fs::remove_all(directory_);
  }

  static constexpr std::chrono::milliseconds kInterval{300};  // between checkpoints, in start_training()
  static constexpr std::chrono::milliseconds kSlack{1500};    // for the save itself, on a machine that is busy

  std::string logdir() const { return directory_ + "/run"; }

  std::unique_ptr<Process> start(std::vector<std::string> flags) {
    flags.insert(flags.begin(), FASHION_MNIST_PROGRAM);
    return std::make_unique<Process>(flags, directory_ + "/output");
  }
  std::unique_ptr<Process> start_training(const std::string& logdir, int steps) {
    return start({"--logdir=" + logdir, "--steps=" + std::to_string(steps), "--threads=1", "--save_model_secs=0.3",
                  "--save_summaries_secs=0.5", "--batch_size=64"});
  }

  // The last line's fields.
  struct Done {
    int64_t step = -1, restored_from = -1;
    double accuracy = 0;
    std::string checkpoint;
  };
  static Done parse_done(const std::string& output) {
    static const std::regex line(
        R"(done step=(\d+) restored_from=(\d+) test_accuracy=([0-9.]+) steps_per_sec=[0-9.]+ checkpoint=(\S+)\n$)");
    std::smatch match;
    if (!std::regex_search(output, match, line)) {
      ADD_FAILURE() << "no last line in:\n" << output;
      return {};
    }
    return {std::stoll(match[1]), std::stoll(match[2]), std::stod(match[3]), match[4]};
  }

  std::string newest_checkpoint() const {
    return newest_intact_checkpoint(FileSystem::real(), logdir(), "model.ckpt").prefix.value_or("");
  }

  static std::string tensor_bytes(const std::string& prefix) {
    return read_file(FileSystem::real(), prefix + ".data-00000-of-00001");
  }

  static int64_t step_of(const std::string& prefix) { return std::stoll(prefix.substr(prefix.rfind('-') + 1)); }

  static int64_t saved_step(const std::string& prefix) {
    return BundleReader(FileSystem::real(), prefix).read("global_step").item<int64_t>();
  }

  std::string directory_;
};

TEST_F(ExampleTest, GoesOnAfterKillsAndEndsWhereAnUndisturbedRunEnds) {
  constexpr int kSteps = 3000, kKills = 8;
  auto undisturbed = start_training(directory_ + "/undisturbed", kSteps);
  ASSERT_EQ(undisturbed->wait(), 0) << undisturbed->output();
  const Done expected = parse_done(undisturbed->output());
  EXPECT_EQ(expected.step, kSteps);

  std::mt19937 random(static_cast<unsigned>(std::random_device{}()));
  std::string newest;
  for (int kill = 0; kill < kKills; ++kill) {
    auto victim = start_training(logdir(), kSteps);
    victim->runs_for(std::chrono::milliseconds(std::uniform_int_distribution<>(50, 2500)(random)));
    victim->send(SIGKILL);
    victim->wait();
    const auto killed_at = fs::file_time_type::clock::now();
    const std::string log = victim->errors();
    if (!newest.empty() && log.find("Restored model") != std::string::npos) {
      EXPECT_THAT(log, HasSubstr("Restored model from " + newest + "\n"));
    }
    const std::string before = newest;
    newest = fs::exists(logdir()) ? newest_checkpoint() : "";
    if (!before.empty()) {
      ASSERT_FALSE(newest.empty());
      EXPECT_GE(step_of(newest), step_of(before)) << "a checkpoint was lost";
    }
    if (!newest.empty()) {
      EXPECT_EQ(saved_step(newest), step_of(newest)) << "the name and the contents are of two steps";
    }
    if (newest != before) {
      EXPECT_LT(killed_at - fs::last_write_time(newest + ".index"), kInterval + kSlack) << "steps were lost";
    }
  }

  auto last = start_training(logdir(), kSteps);
  ASSERT_EQ(last->wait(), 0) << last->output();
  const Done done = parse_done(last->output());
  EXPECT_EQ(done.step, kSteps);
  EXPECT_EQ(done.restored_from, newest.empty() ? 0 : step_of(newest));
  EXPECT_EQ(done.accuracy, expected.accuracy);
  EXPECT_EQ(saved_step(done.checkpoint), kSteps);
  EXPECT_TRUE(tensor_bytes(done.checkpoint) == tensor_bytes(expected.checkpoint)) << "the weights are others";
}

TEST_F(ExampleTest, LosesNoMoreThanTheSaveInterval) {
  auto training = start_training(logdir(), 1000000);
  ASSERT_TRUE(training->prints("step ")) << training->output();
  ASSERT_TRUE(training->runs_for(std::chrono::milliseconds(2000)));
  const auto killed_at = fs::file_time_type::clock::now();
  training->send(SIGKILL);
  training->wait();
  const std::string newest = newest_checkpoint();
  ASSERT_FALSE(newest.empty());
  EXPECT_GT(step_of(newest), 0);
  EXPECT_LT(killed_at - fs::last_write_time(newest + ".index"), kInterval + kSlack);
}

TEST_F(ExampleTest, TheDefaultsReachTheirAccuracy) {
  auto training = start({"--logdir=" + logdir()});
  ASSERT_EQ(training->wait(std::chrono::seconds(300)), 0) << training->errors();
  EXPECT_GE(parse_done(training->output()).accuracy, 0.87);
  EXPECT_THAT(training->output(), ContainsRegex("step [0-9]+ of 8000  loss [0-9.]+"));
}

class ExampleFlagsTest : public ExampleTest, public ::testing::WithParamInterface<std::vector<std::string>> {};

TEST_P(ExampleFlagsTest, AreHeeded) {
  std::vector<std::string> flags = GetParam();
  flags.insert(flags.end(),
               {"--logdir=" + logdir(), "--steps=12", "--data_dir=" + std::string(examples::kFashionMnistDirectory)});
  auto training = start(flags);
  ASSERT_EQ(training->wait(), 0) << training->errors();
  EXPECT_EQ(parse_done(training->output()).step, 12);
}

INSTANTIATE_TEST_SUITE_P(, ExampleFlagsTest,
                         ::testing::Values(std::vector<std::string>{"--model=cnn", "--threads=2"},
                                           std::vector<std::string>{"--optimizer=sgd", "--learning_rate=0.05",
                                                                    "--seed=7"},
                                           std::vector<std::string>{"--optimizer=momentum", "--batch_size=16"}));

class ExampleSignalTest : public ExampleTest, public ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(ExampleSignalTest, EndsAfterTheStepWithACheckpointOfThatStep) {
  const auto [signal, status] = GetParam();
  auto training = start_training(logdir(), 1000000);
  ASSERT_TRUE(training->prints("step ")) << training->output();
  training->send(signal);
  EXPECT_EQ(training->wait(), status) << training->output();
  const Done done = parse_done(training->output());
  EXPECT_EQ(done.checkpoint, newest_checkpoint());
  EXPECT_EQ(saved_step(done.checkpoint), done.step);
}

INSTANTIATE_TEST_SUITE_P(, ExampleSignalTest,
                         ::testing::Values(std::pair(SIGINT, 0), std::pair(SIGTERM, 75), std::pair(SIGHUP, 75),
                                           std::pair(SIGUSR1, 75)));

TEST_F(ExampleTest, WrongUsageIsExitStatusTwo) {
  for (const char* flag :
       {"--no_such_flag=1", "--steps=many", "--model=transformer", "--batch_size=0", "--save_model_secs=-1"}) {
    auto training = start({flag});
    EXPECT_EQ(training->wait(), 2) << flag;
    EXPECT_THAT(training->errors(), HasSubstr(std::string(flag).substr(0, std::string(flag).find('=')))) << flag;
  }
}

TEST_F(ExampleTest, AnEmptyValueIsWrongUsageAndTakesNoOtherFlag) {
  auto training = start({"--logdir=", "--steps=50"});
  EXPECT_EQ(training->wait(), 2) << training->errors();
  EXPECT_THAT(training->errors(), HasSubstr("--logdir: the value is empty"));
  EXPECT_FALSE(fs::exists("--steps=50")) << "it was taken for a directory";
}

TEST_F(ExampleTest, HelpSaysWhatThereIsAndTrainsNothing) {
  auto help = start({"--help"});
  EXPECT_EQ(help->wait(), 0) << help->errors();
  for (const char* text : {"--logdir", "--digest_steps", "75 stopped by SIGTERM"}) {
    EXPECT_THAT(help->output(), HasSubstr(text));
  }
}

TEST_F(ExampleTest, MissingAndTruncatedDataAreNamedWithARemedy) {
  auto missing = start({"--logdir=" + logdir(), "--data_dir=" + directory_});
  EXPECT_EQ(missing->wait(), 1);
  EXPECT_THAT(missing->errors(), HasSubstr(directory_ + "/train-"));
  EXPECT_THAT(missing->errors(), HasSubstr("--data_dir"));

  fs::copy(examples::kFashionMnistDirectory, directory_ + "/data");
  fs::resize_file(directory_ + "/data/t10k-images-idx3-ubyte.gz", 100000);
  auto truncated = start({"--logdir=" + logdir(), "--data_dir=" + directory_ + "/data"});
  EXPECT_EQ(truncated->wait(), 1);
  EXPECT_THAT(truncated->errors(), HasSubstr("t10k-images-idx3-ubyte.gz"));
}

TEST_F(ExampleTest, ALogdirThatCannotBeWrittenIsAnError) {
  std::ofstream(directory_ + "/file") << "not a directory";
  auto training = start({"--logdir=" + directory_ + "/file/run"});
  EXPECT_EQ(training->wait(), 1);
  EXPECT_THAT(training->errors(), HasSubstr(directory_ + "/file"));
}

TEST_F(ExampleTest, ADeviceThatIsNotThereIsAnErrorAndNoSlowTraining) {
  auto training = start({"--logdir=" + logdir(), "--steps=5", "--device=/gpu:99"});
  EXPECT_EQ(training->wait(), 1);
  EXPECT_THAT(training->errors(), ContainsRegex("Cannot assign a device.*/device:GPU:99.*CPU:0"));
  auto on_host = start({"--logdir=" + logdir(), "--steps=5", "--device=/cpu:0"});
  EXPECT_EQ(on_host->wait(), 0) << on_host->errors();
}

TEST_F(ExampleTest, ACheckpointOfAnotherModelIsRefusedByName) {
  auto mlp = start_training(logdir(), 5);
  ASSERT_EQ(mlp->wait(), 0) << mlp->output();
  auto cnn = start({"--logdir=" + logdir(), "--steps=5", "--model=cnn"});
  EXPECT_EQ(cnn->wait(), 1);
  EXPECT_THAT(cnn->errors(), HasSubstr("conv1/weights"));
  EXPECT_THAT(cnn->errors(), HasSubstr("hidden/weights not found in checkpoint"));
  auto again = start_training(logdir(), 6);
  EXPECT_EQ(again->wait(), 0) << again->errors();
  EXPECT_EQ(parse_done(again->output()).restored_from, 5) << "the checkpoint was harmed";
}

TEST_F(ExampleTest, ADamagedCheckpointIsSkippedAndTheOneBeforeIsUsed) {
  auto first = start_training(logdir(), 5);
  ASSERT_EQ(first->wait(), 0) << first->output();
  auto second = start_training(logdir(), 10);
  ASSERT_EQ(second->wait(), 0) << second->output();
  std::fstream data(logdir() + "/model.ckpt-10.data-00000-of-00001", std::ios::in | std::ios::out | std::ios::binary);
  data.seekp(5000);
  data.put('\x55');
  data.close();
  auto third = start_training(logdir(), 12);
  EXPECT_EQ(third->wait(), 0) << third->output();
  EXPECT_THAT(third->errors(), HasSubstr("model.ckpt-10"));
  EXPECT_THAT(third->errors(), HasSubstr("Restored model from " + logdir() + "/model.ckpt-5\n"));
  EXPECT_EQ(parse_done(third->output()).step, 12);
}

}  // namespace
}  // namespace longhaul
