// What is counted is what happened: scripts stand for the training's program.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "longhaul/testing/temporary_directory.h"
#include "tests/soak/run_cases.h"

namespace longhaul::soak {
namespace {

namespace fs = std::filesystem;

class DirectoryCases : public ::testing::Test {
 protected:
  DirectoryCases() { fs::create_directory(training_.directory); }

  // It is called with the directory, and has told of its first step when `after_its_first_step` comes.
  void set_program(const std::string& after_its_first_step) {
    std::ofstream(training_.program) << "#!/bin/bash\necho 5\n" << after_its_first_step << '\n';
    fs::permissions(training_.program, fs::perms::owner_all);
  }

  const testing::TemporaryDirectory temporary_;
  const Training training_{
      .program = temporary_.file("program"), .directory = temporary_.file("run"), .length = milliseconds(2000)};
  Random random_{7};
};

const std::string kUntilItIsAway = "while [ -d \"$1\" ]; do sleep 0.01; done; ";
const std::string kUntilItIsBack = "while [ ! -d \"$1\" ]; do sleep 0.01; done; ";

TEST_F(DirectoryCases, OfOneThatHasEndedBeforeAreNone) {
  set_program("exit 0");
  EXPECT_EQ(run_with_directory_away_for_a_while(training_, random_).fault, kNoFault);
  EXPECT_EQ(run_with_directory_away_until_killed(training_, random_).fault, kNoFault);
  EXPECT_TRUE(fs::exists(training_.directory));
}

TEST_F(DirectoryCases, OfOneThatEndsMeanwhileAreNotThoseThatCameBackOrWereKilled) {
  set_program(kUntilItIsAway + "exit 1");
  EXPECT_EQ(run_with_directory_away_for_a_while(training_, random_).fault, "directory away until it ended");
  EXPECT_EQ(run_with_directory_away_until_killed(training_, random_).fault, "directory away until it ended");
  EXPECT_TRUE(fs::exists(training_.directory));
}

TEST_F(DirectoryCases, OfOneThatGoesOnAreWhatTheyAreCalled) {
  set_program(kUntilItIsAway + kUntilItIsBack + "exit 0");
  EXPECT_EQ(run_with_directory_away_for_a_while(training_, random_).fault, "directory away for a while");
  EXPECT_EQ(run_with_directory_away_until_killed(training_, random_).fault, "directory away until it was killed");
  EXPECT_TRUE(fs::exists(training_.directory));
}

TEST_F(DirectoryCases, OfAKillThatComesTooLateIsNone) {
  set_program("exit 0");
  const auto process = start(training_);
  process->wait();
  EXPECT_EQ(killed(*process, "killed").fault, kNoFault);
}

}  // namespace
}  // namespace longhaul::soak
