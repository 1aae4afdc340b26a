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
inline constexpr char kSlowSaves[] = "LONGHAUL_FAULTS=slow@sync(.data-):1+=3000";  // three seconds each

// A training as a process (preemption_program.cc), by a Supervisor or monitored.
class PreemptionProcessTest : public ::testing::TestWithParam<std::string> {
 protected:
  using Process = testing::Process;
  using Words = std::vector<std::string>;

  // `wrapper`: a program that runs the one that its last arguments name.
  std::unique_ptr<Process> launch(const Words& environment = {}, const Words& wrapper = {}) const;
  std::unique_ptr<Process> start(const Words& environment = {}, const Words& wrapper = {}) const;
  virtual std::string logdir() const { return directory_.file("run"); }

  int64_t newest_step() const;
  // Until there is a checkpoint of a step after this one; its step.
  int64_t wait_for_checkpoint_after(int64_t step) const;
  // Two checkpoints at least, a hundred steps apart, and the process has ended well after the last.
  int64_t make_checkpoints();
  // After a checkpoint, so that another one is due at the end.
  bool make_steps(Process& training) const;
  bool is_saving() const;
  template <typename Condition>
  static bool soon(Condition&& condition) {
    for (int i = 0; i < 6000; ++i) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  static int64_t number_after(const std::string& words, const std::string& text);
  // That checkpoint is of one moment between two steps.
  void expect_whole(int64_t step) const;
  static int64_t first_step(const Process& training) { return number_after("begins at step ", training.output()); }
  void expect_to_go_on_from(int64_t step);

  const testing::TemporaryDirectory directory_;
};

}  // namespace longhaul
