#include "longhaul/resume_check/started_program.h"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include "longhaul/base/clock.h"
#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class StartedProgramTest : public ::testing::Test {
 protected:
  StartedProgram start(const std::string& script) {
    return {signals_, {.command = {"sh", "-c", script}, .environment = {"TOLD=7"}, .output_path = output_}};
  }
  std::string output() const { return read_file(FileSystem::real(), output_); }
  static Seconds in(double seconds) { return Clock::real().now() + Seconds{seconds}; }

  const testing::TemporaryDirectory directory_;
  const std::string output_ = directory_.file("output");
  const WaitedSignals signals_;
};

TEST_F(StartedProgramTest, TellsItsEndAndWhatItWrote) {
  StartedProgram program = start("echo $TOLD; echo error >&2; exit 75");
  const auto end = program.wait_until(in(60));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->to_string(), "exit status 75");
  EXPECT_EQ(output(), "7\nerror\n");
}

TEST_F(StartedProgramTest, AWaitEndsAtItsTime) {
  StartedProgram program = start("sleep 100");
  EXPECT_FALSE(program.wait_until(in(0.05)));
  program.send(SIGKILL);
  EXPECT_EQ(program.wait_until(in(60))->signal, SIGKILL);
}

TEST_F(StartedProgramTest, WhatItStartedEndsWithIt) {
  StartedProgram program = start("sleep 100 & echo $!");
  ASSERT_TRUE(program.wait_until(in(60)));
  EXPECT_EQ(kill(std::stoi(output()), 0), -1);
}

TEST_F(StartedProgramTest, EndsWithItsObject) {
  {
    const StartedProgram program = start("echo $$; sleep 100; echo later");
  }
  const std::string written = FileSystem::real().exists(output_) ? output() : "";
  EXPECT_THAT(written, ::testing::Not(HasSubstr("later")));
}

TEST_F(StartedProgramTest, OneThatIsNotThereIsNamed) {
  const auto start_none = [&] {
    StartedProgram(signals_, {.command = {"./no_such_program"}, .environment = {}, .output_path = output_});
  };
  EXPECT_THAT(start_none, ::testing::ThrowsMessage<InvalidArgumentError>(
                              HasSubstr("./no_such_program cannot be started: No such file")));
}

TEST_F(StartedProgramTest, ASignalForThisProcessEndsTheWait) {
  StartedProgram program = start("sleep 100");
  raise(SIGINT);
  EXPECT_THROW(program.wait_until(in(60)), InterruptedError);
}

// The parent is a process of its own here, which is killed.
TEST_F(StartedProgramTest, DiesWithThisProcess) {
  const pid_t parent = fork();
  if (parent == 0) {
    StartedProgram program = start("echo $$; exec sleep 100");
    static_cast<void>(program.wait_until(in(100)));
    _exit(0);
  }
  while (!FileSystem::real().exists(output_) || output().empty()) usleep(2000);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  const pid_t orphan = std::stoi(output());
  int tries = 0;
  while (waitpid(orphan, nullptr, WNOHANG) == 0 && ++tries < 5000) usleep(2000);
  EXPECT_EQ(kill(orphan, 0), -1);
}

}  // namespace
}  // namespace longhaul
