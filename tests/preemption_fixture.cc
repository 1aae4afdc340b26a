#include "tests/preemption_fixture.h"

namespace longhaul {

std::unique_ptr<testing::Process> PreemptionProcessTest::launch(const Words& environment, const Words& wrapper) const {
  Words command{"/usr/bin/env", "-u", "LONGHAUL_PREEMPTION_GRACE", "-u", "SLURM_JOB_END_TIME"};
  command.insert(command.end(), environment.begin(), environment.end());
  command.insert(command.end(), wrapper.begin(), wrapper.end());
  command.insert(command.end(), {PREEMPTION_PROGRAM, GetParam(), logdir()});
  return std::make_unique<Process>(command, directory_.file("output"));
}

std::unique_ptr<testing::Process> PreemptionProcessTest::start(const Words& environment, const Words& wrapper) const {
  auto training = launch(environment, wrapper);
  EXPECT_TRUE(training->prints("begins at step")) << training->errors();
  return training;
}

int64_t PreemptionProcessTest::newest_step() const {
  const auto newest = newest_intact_checkpoint(FileSystem::real(), logdir(), "model.ckpt").prefix;
  return newest ? split_step(*newest).step.value() : -1;
}

int64_t PreemptionProcessTest::wait_for_checkpoint_after(int64_t step) const {
  int64_t newest = -1;
  EXPECT_TRUE(soon([&] { return (newest = newest_step()) > step; }));
  return newest;
}

int64_t PreemptionProcessTest::make_checkpoints() {
  for (int i = 0; i < 2; ++i) {
    const int64_t before = newest_step();
    const auto training = start({"PRINTS_STEPS=1"});
    EXPECT_TRUE(training->prints("step now is " + std::to_string(before + 100))) << training->errors();
    training->send(SIGTERM);
    EXPECT_EQ(training->wait(), kPreempted) << training->errors();
    EXPECT_GT(newest_step(), before);
  }
  return newest_step();
}

bool PreemptionProcessTest::make_steps(Process& training) const {
  return soon([&] { return !is_saving(); }) && training.runs_for(std::chrono::milliseconds(300));
}

bool PreemptionProcessTest::is_saving() const {
  for (const auto& entry : std::filesystem::directory_iterator(logdir())) {
    if (entry.path().string().find(".tempstate") != std::string::npos) return true;
  }
  return false;
}

int64_t PreemptionProcessTest::number_after(const std::string& words, const std::string& text) {
  const size_t at = text.find(words);
  return at == std::string::npos ? -1 : std::stoll(text.substr(at + words.size()));
}

void PreemptionProcessTest::expect_whole(int64_t step) const {
  const BundleReader reader(FileSystem::real(), logdir() + "/model.ckpt-" + std::to_string(step));
  EXPECT_EQ(reader.read("global_step").item<int64_t>(), step);
  const Tensor weights = reader.read("weights");
  for (const float weight : weights.flat<float>()) ASSERT_EQ(weight, static_cast<float>(step));
}

void PreemptionProcessTest::expect_to_go_on_from(int64_t step) {
  const auto again = start();
  EXPECT_EQ(first_step(*again), step);
  again->send(SIGTERM);
  EXPECT_EQ(again->wait(), kPreempted) << again->errors();
}

}  // namespace longhaul
