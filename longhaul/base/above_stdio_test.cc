#include "longhaul/base/above_stdio.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace longhaul {
namespace {

int open_something() {
  return ::open("/dev/null", O_RDWR | O_CLOEXEC);
}

bool is_closed(int fd) {
  return fcntl(fd, F_GETFD) < 0;
}

void close_stdio() {
  for (int fd = 0; fd <= 2; ++fd) ::close(fd);
}

// Each in a process of its own, whose descriptors 0 to 2 are closed; the status is 0 if it holds.
#define EXPECT_IN_CHILD(statement)  \
  EXPECT_EXIT(                      \
      {                             \
        close_stdio();              \
        _exit((statement) ? 0 : 1); \
      },                            \
      ::testing::ExitedWithCode(0), "")

bool nothing_gets_a_low_descriptor() {
  const AboveStdio above;
  const AboveStdio again;
  return open_something() > 2 && open_something() > 2;
}

bool they_are_closed_again_afterwards() {
  {
    const AboveStdio above;
    const AboveStdio again;
    if (is_closed(0) || is_closed(1) || is_closed(2)) return false;
  }
  return is_closed(0) && is_closed(1) && is_closed(2);
}

bool what_is_printed_meanwhile_is_refused_as_by_a_closed_one() {
  const AboveStdio above;
  return ::write(1, "x", 1) < 0 && errno == EBADF;
}

bool what_the_program_puts_there_meanwhile_stays() {
  {
    const AboveStdio above;
    ::dup2(open_something(), 1);
  }
  return !is_closed(1) && is_closed(0) && is_closed(2);
}

TEST(AboveStdioDeathTest, NothingGetsALowDescriptor) {
  EXPECT_IN_CHILD(nothing_gets_a_low_descriptor());
}
TEST(AboveStdioDeathTest, TheyAreClosedAgainAfterwards) {
  EXPECT_IN_CHILD(they_are_closed_again_afterwards());
}
TEST(AboveStdioDeathTest, WhatIsPrintedMeanwhileIsRefusedAsByAClosedOne) {
  EXPECT_IN_CHILD(what_is_printed_meanwhile_is_refused_as_by_a_closed_one());
}
TEST(AboveStdioDeathTest, WhatTheProgramPutsThereMeanwhileStays) {
  EXPECT_IN_CHILD(what_the_program_puts_there_meanwhile_stays());
}

TEST(AboveStdio, WhereAllAreOpenNothingIsTaken) {
  const int next = open_something();
  ::close(next);
  const AboveStdio above;
  const int fd = open_something();
  EXPECT_EQ(fd, next);
  ::close(fd);
}

}  // namespace
}  // namespace longhaul
