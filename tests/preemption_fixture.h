#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>

#include "longhaul/checkpoint/bundle/bundle_reader.h"
#include "longhaul/checkpoint/directory/newest_intact_checkpoint.h"
#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/testing/temporary_directory.h"
#include "tests/process.h"

namespace longhaul {

inline constexpr int kPreempted = 75;
inline constexpr char kSlow[] = "700000";  // bytes in a second: a checkpoint, of 2 MiB, takes three

// A training as a process (preemption_program.cc), by a Supervisor or monitored.
class PreemptionProcessTest : public ::testing::TestWithParam<std::string> {
 protected:
  using Process = testing::Process;
  using Words = std::vector<std::string>;

  // `wrapper`: a program that runs the one that its last arguments name.
  std::unique_ptr<Process> launch(const Words& environment = {}, const std::string& bytes_per_second = "0",
                                  const Words& wrapper = {}) const {
    Words command{"/usr/bin/env", "-u", "LONGHAUL_PREEMPTION_GRACE", "-u", "SLURM_JOB_END_TIME"};
    command.insert(command.end(), environment.begin(), environment.end());
    command.insert(command.end(), wrapper.begin(), wrapper.end());
    command.insert(command.end(), {PREEMPTION_PROGRAM, GetParam(), logdir(), bytes_per_second});
    return std::make_unique<Process>(command, directory_.file("output"));
  }
  std::unique_ptr<Process> start(const Words& environment = {}, const std::string& bytes_per_second = "0",
                                 const Words& wrapper = {}) const {
    auto training = launch(environment, bytes_per_second, wrapper);
    EXPECT_TRUE(training->prints("begins at step")) << training->errors();
    return training;
  }
  virtual std::string logdir() const { return directory_.file("run"); }

  int64_t newest_step() const {
    const auto newest = newest_intact_checkpoint(FileSystem::real(), logdir(), "model.ckpt").prefix;
    return newest ? split_step(*newest).step.value() : -1;
  }
  // Until there is a checkpoint of a step after this one; its step.
  int64_t wait_for_checkpoint_after(int64_t step) const {
    int64_t newest = -1;
    EXPECT_TRUE(soon([&] { return (newest = newest_step()) > step; }));
    return newest;
  }
  // Two checkpoints at least, a hundred steps apart, and the process has ended well after the last.
  int64_t make_checkpoints() {
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
  // After a checkpoint, so that another one is due at the end.
  bool make_steps(Process& training) const {
    return soon([&] { return !is_saving(); }) && training.runs_for(std::chrono::milliseconds(300));
  }
  bool is_saving() const {
    for (const auto& entry : std::filesystem::directory_iterator(logdir())) {
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
  static int64_t first_step(const Process& training) { return number_after("begins at step ", training.output()); }
  void expect_to_go_on_from(int64_t step) {
    const auto again = start();
    EXPECT_EQ(first_step(*again), step);
    again->send(SIGTERM);
    EXPECT_EQ(again->wait(), kPreempted) << again->errors();
  }

  const testing::TemporaryDirectory directory_;
};

}  // namespace longhaul
