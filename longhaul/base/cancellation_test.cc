#include "longhaul/base/cancellation.h"

#include <gtest/gtest.h>

#include <optional>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

std::string reason_of(const Cancellation& cancellation) {
  try {
    cancellation.check();
  } catch (const CancelledError& error) {
    return error.what();
  }
  return "";
}

TEST(Cancellation, KeepsTheFirstReason) {
  Cancellation cancellation;
  EXPECT_FALSE(cancellation.cancelled());
  EXPECT_EQ(reason_of(cancellation), "");
  cancellation.cancel("the session was closed");
  cancellation.cancel("something else");
  EXPECT_TRUE(cancellation.cancelled());
  EXPECT_EQ(reason_of(cancellation), "the session was closed");
}

TEST(Cancellation, WakesEachWatchOnce) {
  Cancellation cancellation;
  int first = 0, second = 0;
  const Cancellation::Watch watch(cancellation, [&] { ++first; });
  const Cancellation::Watch other(cancellation, [&] { ++second; });
  EXPECT_EQ(first, 0);
  cancellation.cancel("stop");
  cancellation.cancel("stop");
  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 1);
}

TEST(Cancellation, AWatchThatComesTooLateIsWokenAtOnce) {
  Cancellation cancellation;
  cancellation.cancel("stop");
  int woken = 0;
  const Cancellation::Watch watch(cancellation, [&] { ++woken; });
  EXPECT_EQ(woken, 1);
}

TEST(Cancellation, AnAbortIsAnotherErrorAndTheFirstCounts) {
  Cancellation aborted, cancelled;
  aborted.abort("the containers were reset");
  aborted.cancel("the session was closed");
  EXPECT_THROW(aborted.check(), AbortedError);
  EXPECT_THROW(aborted.check_aborted(), AbortedError);
  cancelled.cancel("the session was closed");
  cancelled.abort("the containers were reset");
  EXPECT_EQ(reason_of(cancelled), "the session was closed");
  EXPECT_NO_THROW(cancelled.check_aborted());
}

TEST(Cancellation, APartEndsWithTheWholeAndForTheSameReason) {
  Cancellation whole;
  Cancellation part(&whole), ended(&whole);
  int woken = 0;
  const Cancellation::Watch watch(part, [&] { ++woken; });
  ended.cancel("another part failed");
  EXPECT_FALSE(whole.cancelled());
  whole.abort("the containers were reset");
  EXPECT_EQ(woken, 1);
  EXPECT_THROW(part.check(), AbortedError);
  EXPECT_EQ(reason_of(ended), "another part failed");
  const Cancellation late(&whole);
  EXPECT_THROW(late.check(), AbortedError);
}

TEST(Cancellation, APartEndsWithWhicheverOfTwoComesFirst) {
  Cancellation session, caller;
  Cancellation run(&session, &caller), next(&session, &caller);
  int woken = 0;
  const Cancellation::Watch watch(run, [&] { ++woken; });
  caller.cancel("the client has gone");
  EXPECT_EQ(reason_of(run), "the client has gone");
  EXPECT_FALSE(session.cancelled());
  session.abort("the containers were reset");
  EXPECT_EQ(woken, 1);
  EXPECT_EQ(reason_of(next), "the client has gone");
  const Cancellation late(&session, &caller), without(&session, nullptr);
  EXPECT_THROW(late.check(), AbortedError);
  EXPECT_THROW(without.check(), AbortedError);
}

TEST(Cancellation, APartThatIsGoneIsNotReached) {
  Cancellation session, caller;
  std::make_unique<Cancellation>(&session, &caller).reset();
  EXPECT_NO_THROW(session.cancel("the session was closed"));
  EXPECT_NO_THROW(caller.cancel("the client has gone"));
}

TEST(Cancellation, AWatchThatIsGoneIsNotWoken) {
  Cancellation cancellation;
  int woken = 0;
  std::optional<Cancellation::Watch> watch;
  watch.emplace(cancellation, [&] { ++woken; });
  watch.reset();
  cancellation.cancel("stop");
  EXPECT_EQ(woken, 0);
}

}  // namespace
}  // namespace longhaul
