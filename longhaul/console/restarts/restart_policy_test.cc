#include "longhaul/console/restarts/restart_policy.h"

#include <gmock/gmock.h>
#include <signal.h>

namespace longhaul::console {
namespace {

using ::testing::HasSubstr;

constexpr Seconds kShort{1};

TEST(RestartPolicyTest, WhatIsDoneOrCannotWorkIsNotRepeated) {
  RestartPolicy policy({});
  for (const int status : {0, 2, 126, 127}) EXPECT_FALSE(policy.after({.status = status}, kShort, false).pause);
  EXPECT_EQ(policy.restarts_left(), 10);
}

TEST(RestartPolicyTest, APreemptionAndACrashAreRepeated) {
  RestartPolicy policy({});
  EXPECT_TRUE(policy.after({.status = 75}, kShort, false).pause);
  EXPECT_TRUE(policy.after({.status = 1}, kShort, false).pause);
  EXPECT_TRUE(policy.after({.status = 79}, kShort, false).pause) << "it hung (HangOptions::kill_after)";
  EXPECT_TRUE(policy.after({.signal = SIGSEGV}, kShort, false).pause);
  EXPECT_TRUE(policy.after({.status = 127, .was_started = false}, kShort, false).pause)
      << "a file server may be away for a while";
  EXPECT_EQ(policy.restarts_left(), 5);
}

TEST(RestartPolicyTest, NothingIsRepeatedAfterAStopSignal) {
  RestartPolicy policy({});
  for (const ProgramEnd& end : {ProgramEnd{.status = 75}, ProgramEnd{.signal = SIGSEGV}, ProgramEnd{.status = 1}}) {
    EXPECT_FALSE(policy.after(end, kShort, true).pause);
  }
}

TEST(RestartPolicyTest, PausesGrowAndTheBudgetEnds) {
  RestartPolicy policy({.max_restarts = 5, .first_pause = Seconds{1}, .longest_pause = Seconds{6}});
  for (const double pause : {1, 2, 4, 6, 6}) {
    EXPECT_EQ(policy.after({.status = 1}, kShort, false).pause, Seconds{pause});
  }
  const auto last = policy.after({.status = 1}, kShort, false);
  EXPECT_FALSE(last.pause);
  EXPECT_THAT(last.why, HasSubstr("5 restarts in a row are used up"));
}

TEST(RestartPolicyTest, AStartThatLastsGivesAllOfThemBack) {
  RestartPolicy policy({.max_restarts = 2, .steady = Seconds{100}});
  policy.after({.status = 1}, kShort, false);
  policy.after({.status = 1}, kShort, false);
  EXPECT_EQ(policy.restarts_left(), 0);
  EXPECT_EQ(policy.after({.status = 1}, Seconds{100}, false).pause, Seconds{1});
  EXPECT_EQ(policy.restarts_left(), 1);
}

TEST(RestartPolicyTest, WithoutABudgetNothingIsRepeated) {
  RestartPolicy policy({.max_restarts = 0});
  EXPECT_FALSE(policy.after({.status = 75}, Seconds{1e6}, false).pause);
}

TEST(RestartPolicyTest, AnEndHasTheStatusOfShells) {
  EXPECT_EQ((ProgramEnd{.signal = SIGKILL}).exit_status(), 137);
  EXPECT_EQ((ProgramEnd{.status = 75}).exit_status(), 75);
  EXPECT_EQ((ProgramEnd{.signal = SIGKILL}).to_string(), "signal 9 (Killed)");
}

}  // namespace
}  // namespace longhaul::console
