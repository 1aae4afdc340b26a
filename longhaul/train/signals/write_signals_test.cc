#include "longhaul/train/signals/write_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "longhaul/base/error.h"
#include "longhaul/io/files/file.h"
#include "longhaul/testing/temporary_directory.h"

namespace longhaul {
namespace {

void* handler_of(int signal) {
  struct sigaction action{};
  sigaction(signal, nullptr, &action);
  return reinterpret_cast<void*>(action.sa_handler);
}

int error_of_a_write_that_nobody_reads() {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  close(ends[0]);
  const int error = write(ends[1], "x", 1) < 0 ? errno : 0;
  close(ends[1]);
  return error;
}

TEST(WriteSignals, AWriteThatNobodyReadsFails) {
  const WriteSignals signals;
  EXPECT_EQ(error_of_a_write_that_nobody_reads(), EPIPE);
}

TEST(WriteSignalsDeathTest, AWriteBeyondTheLimitOfFileSizesFails) {
  const testing::TemporaryDirectory directory;
  const auto write_too_much = [&] {
    const WriteSignals signals;
    const struct rlimit limit{1000, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file_atomically(FileSystem::real(), directory.file("large"), std::string(2000, 'x'));
    } catch (const ResourceExhaustedError&) {
      _exit(42);
    }
  };
  EXPECT_EXIT(write_too_much(), ::testing::ExitedWithCode(42), "");
}

TEST(WriteSignals, WithTheLastOneTheDefaultActionComesBack) {
  std::signal(SIGPIPE, SIG_DFL);
  {
    const WriteSignals first;
    {
      const WriteSignals second;
    }
    EXPECT_EQ(error_of_a_write_that_nobody_reads(), EPIPE);
  }
  EXPECT_EQ(handler_of(SIGPIPE), reinterpret_cast<void*>(SIG_DFL));
  EXPECT_EQ(handler_of(SIGXFSZ), reinterpret_cast<void*>(SIG_DFL));
}

// What was printed, and nobody has read, is not to end the process at its exit.
TEST(WriteSignalsDeathTest, AGoodEndStaysOneWhereNobodyReadsWhatWasPrinted) {
  const auto print_for_nobody = [] {
    std::signal(SIGPIPE, SIG_DFL);
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) _exit(1);
    close(ends[0]);
    std::printf("the end");
    {
      const WriteSignals signals;
    }
    std::printf(", and more");
    std::fflush(nullptr);
    _exit(42);
  };
  EXPECT_EXIT(print_for_nobody(), ::testing::ExitedWithCode(42), "");
}

TEST(WriteSignalsDeathTest, WhatWasPrintedIsFlushed) {
  const auto print = [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) < 0) _exit(1);
    std::printf("the end");
    {
      const WriteSignals signals;
    }
    char text[8] = "";
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) _exit(2);
    _exit(read(ends[0], text, 7) == 7 ? 42 : 3);
  };
  EXPECT_EXIT(print(), ::testing::ExitedWithCode(42), "");
}

TEST(WriteSignals, WhatTheProgramHasSetStays) {
  std::signal(SIGPIPE, SIG_IGN);
  {
    const WriteSignals signals;
    EXPECT_EQ(handler_of(SIGPIPE), reinterpret_cast<void*>(SIG_IGN));
    std::signal(SIGXFSZ, SIG_IGN);
  }
  EXPECT_EQ(handler_of(SIGPIPE), reinterpret_cast<void*>(SIG_IGN));
  EXPECT_EQ(handler_of(SIGXFSZ), reinterpret_cast<void*>(SIG_IGN));
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
}

TEST(WriteSignals, ProgramsThatAreStartedHaveTheDefaultAction) {
  std::signal(SIGPIPE, SIG_DFL);
  const WriteSignals signals;
  const int status = std::system("kill -PIPE $$");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE) << status;
}

}  // namespace
}  // namespace longhaul
