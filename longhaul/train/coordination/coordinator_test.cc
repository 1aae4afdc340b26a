#include "longhaul/train/coordination/coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "longhaul/base/log.h"
#include "longhaul/testing/fake_clock.h"
#include "longhaul/testing/no_new_threads_fixture.h"
#include "longhaul/testing/threads_end_fixture.h"

namespace longhaul {
namespace {

using testing::FakeClock;
using ::testing::HasSubstr;

std::exception_ptr failure(const std::string& message) {
  return std::make_exception_ptr(InternalError(message));
}

class CoordinatorTest : public ::testing::Test {
 protected:
  // A thread that runs until it is let go, whatever the coordinator says.
  void start_deaf_thread(const std::string& name) {
    coord.start_thread(name, [release = release] {
      while (!*release) std::this_thread::yield();
    });
  }
  std::string join_error(const JoinOptions& options = {}) {
    try {
      coord.join(options);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  void TearDown() override { *release = true; }

  FakeClock clock{FakeClock::Waits::kPassTime};
  const ThreadsEnd threads_end;
  Coordinator coord{{.clock = &clock}};
  std::shared_ptr<std::atomic<bool>> release = std::make_shared<std::atomic<bool>>(false);
};

TEST(Coordinator, AStopDoesNotWaitForTheLogOfItsError) {
  const Coordinator coord;
  bool is_too_early = false;
  int messages = 0;
  const LogSink before = set_log_sink([&](LogLevel, const std::string&) {
    if (!coord.should_stop()) is_too_early = true;
    ++messages;
  });
  coord.request_stop(std::make_exception_ptr(UnavailableError("down")));
  set_log_sink(before);
  EXPECT_EQ(messages, 1);
  EXPECT_FALSE(is_too_early);
}

TEST_F(CoordinatorTest, AFreshOneDoesNotStop) {  // CO-1
  EXPECT_FALSE(coord.should_stop());
  EXPECT_FALSE(coord.wait_for_stop(Seconds{0.01}));
  coord.request_stop();
  EXPECT_TRUE(coord.should_stop());
  EXPECT_TRUE(coord.wait_for_stop(Seconds{0.01}));
}

TEST(Coordinator, AStopFromAnotherThreadEndsTheWait) {  // CO-2
  const Coordinator coord;
  coord.start_thread("stopper", [coord] { coord.request_stop(); });
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  coord.join();
}

// The real one, which knows whether somebody waits, and for how long the last wait was to be.
class WaitedOnClock : public Clock {
 public:
  Seconds now() const override { return Clock::real().now(); }
  double wall_time() const override { return Clock::real().wall_time(); }
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    last_timeout = timeout;
    has_waiter = true;
    Clock::real().wait_for(cond, mutex, timeout);
  }
  void await_waiter() const {
    while (!has_waiter) std::this_thread::yield();
  }
  std::atomic<bool> has_waiter{false};
  std::atomic<Seconds> last_timeout{Seconds{0}};
};

TEST(Coordinator, AStopEndsAWaitWithoutALimit) {
  const Coordinator coord;
  coord.start_thread("stopper", [coord] { coord.request_stop(); });
  coord.wait_for_stop();
  coord.join();
}

TEST(Coordinator, TheEndOfAThreadOfAnotherOneEndsTheJoin) {
  WaitedOnClock clock;
  const Coordinator coord({.clock = &clock}), other;
  const auto foreign = other.start_thread("foreign", [&] { clock.await_waiter(); });
  coord.request_stop();
  const Seconds begin = clock.now();
  coord.join({.stop_grace = Seconds{3600}}, {foreign});
  EXPECT_GT(clock.last_timeout.load(), Seconds{3000}) << "it does not look again meanwhile";
  EXPECT_LT(clock.now() - begin, Seconds{60});
}

TEST(Coordinator, AStopRequestHasAJoinAskWhenToGiveUp) {
  WaitedOnClock clock;
  const Coordinator coord({.clock = &clock}), other;
  std::atomic<bool> is_pressed{false}, is_released{false};
  coord.start_thread("stuck", [&] {
    while (!is_released) std::this_thread::yield();
  });
  other.start_thread("presses", [&, coord] {
    clock.await_waiter();
    is_pressed = true;
    coord.request_stop();
  });
  coord.request_stop();
  const auto now_if_pressed = [&] { return is_pressed ? std::optional(clock.now()) : std::nullopt; };
  const Seconds begin = clock.now();
  EXPECT_NO_THROW(coord.join({.stop_grace = Seconds{3600}, .give_up_at = now_if_pressed}));
  EXPECT_LT(clock.now() - begin, Seconds{60});
  EXPECT_THAT(coord.running(), ::testing::ElementsAre("stuck"));
  is_released = true;
  coord.join();
  other.join();
}

TEST(Coordinator, ANotificationHasAWaitAskAgain) {
  const Coordinator coord;
  std::atomic<int> questions{0};
  std::atomic<bool> is_due{false};
  coord.start_thread("notifies", [&, coord] {
    while (questions == 0) std::this_thread::yield();
    is_due = true;
    coord.notify();
  });
  EXPECT_FALSE(coord.wait_for_stop_or([&] { return ++questions, is_due.load(); }));
  coord.join();
}

TEST(Coordinator, AStopEndsAWaitForSomethingElse) {
  const Coordinator coord, child = coord.child();
  std::atomic<int> questions{0};
  coord.start_thread("stops", [&, coord] {
    while (questions == 0) std::this_thread::yield();
    coord.request_stop();
  });
  EXPECT_TRUE(child.wait_for_stop_or([&] { return ++questions, false; }));
  coord.join();
}

TEST(Coordinator, AStopEndsTheWaitsOfItsChildrenAndTheirs) {
  WaitedOnClock clock;
  const Coordinator coord;
  const Coordinator grandchild = coord.child().child({.clock = &clock});
  const Seconds begin = clock.now();
  std::atomic<bool> ended{false};
  grandchild.start_thread("waits", [&, grandchild] { ended = grandchild.wait_for_stop(Seconds{60}); });
  while (!clock.has_waiter) std::this_thread::yield();
  coord.request_stop();
  grandchild.join();
  EXPECT_TRUE(ended);
  EXPECT_LT(clock.now() - begin, Seconds{30});
}

TEST_F(CoordinatorTest, AChildsStopAndErrorAreItsOwn) {
  const Coordinator child = coord.child({.clock = &clock}), other = coord.child({.clock = &clock});
  child.request_stop(failure("the child's"));
  EXPECT_FALSE(coord.should_stop());
  EXPECT_FALSE(other.should_stop());
  EXPECT_EQ(coord.reported_error(), nullptr);
  EXPECT_NE(child.reported_error(), nullptr);
  coord.request_stop(failure("the parent's"));
  EXPECT_TRUE(other.should_stop());
  EXPECT_NO_THROW(other.join());
  coord.clear_stop();
  EXPECT_FALSE(other.should_stop());
  EXPECT_TRUE(child.should_stop());
}

TEST_F(CoordinatorTest, JoinWaitsForItsThreadsAndForThoseItIsGiven) {  // CO-3
  const Coordinator other;
  std::atomic<int> ended{0};
  const auto work = [&ended] {
    for (int i = 0; i < 1000; ++i) std::this_thread::yield();
    ++ended;
  };
  coord.start_thread("one", work);
  const auto own = coord.register_thread("own");
  std::thread own_thread([&] {
    work();
    own->finish();
  });
  const auto foreign = other.start_thread("foreign", work);
  coord.join({}, {foreign});
  EXPECT_EQ(ended, 3);
  EXPECT_TRUE(coord.joined());
  own_thread.join();
}

TEST_F(CoordinatorTest, AWaitForSomethingElseHasItsLimitByTheClock) {
  const Seconds before = clock.now();
  EXPECT_FALSE(coord.wait_for_stop_or([] { return false; }, Seconds{5}));
  EXPECT_DOUBLE_EQ((clock.now() - before).count(), 5);
}

TEST_F(CoordinatorTest, AJoinThatIsGivenUpLeavesTheThreadsToTheNext) {
  start_deaf_thread("slow");
  coord.request_stop();
  const Seconds before = clock.now();
  EXPECT_NO_THROW(coord.join({.give_up_at = [&] { return before + Seconds{3}; }}));
  EXPECT_DOUBLE_EQ((clock.now() - before).count(), 3);
  EXPECT_THAT(join_error({.stop_grace = Seconds{1}}), HasSubstr("threads still running: slow"));
}

TEST_F(CoordinatorTest, AThreadThatOutlivesTheGraceIsNamed) {  // CO-4
  start_deaf_thread("slow");
  start_deaf_thread("slower");
  coord.request_stop();
  EXPECT_THAT(join_error({.stop_grace = Seconds{1}}),
              HasSubstr("Coordinator stopped with threads still running: slow slower"));
}

TEST_F(CoordinatorTest, TheGraceIsMeasuredByTheClockFromTheStopOn) {  // CO-11
  start_deaf_thread("slow");
  coord.request_stop();
  const Seconds before = clock.now();
  join_error({.stop_grace = Seconds{2}});
  EXPECT_DOUBLE_EQ((clock.now() - before).count(), 2);
}

TEST_F(CoordinatorTest, ANegativeGraceIsNone) {  // CO-11
  start_deaf_thread("slow");
  coord.request_stop();
  const Seconds before = clock.now();
  EXPECT_THAT(join_error({.stop_grace = Seconds{-1}}), HasSubstr("threads still running"));
  EXPECT_EQ(clock.now(), before);
}

TEST_F(CoordinatorTest, StragglersCanBeIgnored) {  // CO-5
  start_deaf_thread("slow");
  coord.request_stop();
  EXPECT_EQ(join_error({.stop_grace = Seconds{1}, .ignore_live_threads = true}), "");
}

TEST_F(CoordinatorTest, AReportedErrorOutranksAStraggler) {  // CO-10
  start_deaf_thread("slow");
  coord.request_stop(failure("First"));
  EXPECT_EQ(join_error({.stop_grace = Seconds{1}}), "First");
}

TEST_F(CoordinatorTest, AStragglerMayOutliveTheCoordinator) {
  {
    Coordinator short_lived{{.clock = &Clock::real()}};
    short_lived.start_thread("slow", [release = release, short_lived] {
      while (!*release || !short_lived.should_stop()) std::this_thread::yield();
      short_lived.request_stop(failure("nobody listens"));
    });
    short_lived.request_stop();
    EXPECT_THROW(short_lived.join({.stop_grace = Seconds{0}}), DeadlineExceededError);
  }
  *release = true;
}

TEST_F(CoordinatorTest, TheFirstOfTwoErrorsWins) {  // CO-6
  coord.start_thread("first", [] { throw InternalError("First"); });
  while (!coord.wait_for_stop(Seconds{60})) continue;  // a minute of this clock may pass before the thread runs
  EXPECT_FALSE(coord.stop_on_exception([] { throw InternalError("Too late"); }));
  EXPECT_EQ(join_error(), "First");
}

TEST_F(CoordinatorTest, TheFirstErrorWinsHoweverTheTwoAreReported) {  // CO-6
  using Report = std::function<void(const std::string&)>;
  const Report as_exception = [&](const std::string& what) { coord.request_stop(failure(what)); };
  const Report by_handler = [&](const std::string& what) {
    coord.stop_on_exception([&] { throw InternalError(what); });
  };
  for (const Report& first : {as_exception, by_handler}) {
    for (const Report& second : {as_exception, by_handler}) {
      first("First");
      second("Too late");
      EXPECT_EQ(join_error(), "First");
      coord.clear_stop();
    }
  }
}

TEST_F(CoordinatorTest, AnErrorAfterAPlainStopIsKept) {  // unlike CO-13
  coord.request_stop();
  coord.request_stop(failure("while stopping"));
  EXPECT_EQ(join_error(), "while stopping");
}

TEST_F(CoordinatorTest, WhatTheStopHasCancelledIsNoError) {  // CO-13
  coord.request_stop();
  coord.request_stop(std::make_exception_ptr(CancelledError("the queue was closed")));
  EXPECT_EQ(join_error(), "");
}

TEST_F(CoordinatorTest, WhatWasCancelledBeforeAStopIsAnError) {
  coord.request_stop(std::make_exception_ptr(CancelledError("by somebody else")));
  EXPECT_EQ(join_error(), "by somebody else");
}

TEST_F(CoordinatorTest, TheEndOfTheInputIsACleanStop) {  // CO-7
  coord.start_thread("reader", [] { throw OutOfRangeError("the end"); });
  EXPECT_EQ(join_error(), "");
  EXPECT_TRUE(coord.should_stop());
}

TEST_F(CoordinatorTest, CleanStopTypesReplaceTheDefault) {  // CO-7
  coord = Coordinator{{.clean_stop = clean_stop_types<CancelledError, std::logic_error>(), .clock = &clock}};
  coord.request_stop(std::make_exception_ptr(std::logic_error("clean")));
  coord.request_stop(std::make_exception_ptr(OutOfRangeError("the end")));
  EXPECT_EQ(join_error(), "the end");
}

TEST_F(CoordinatorTest, ClearStopForgetsTheErrorToo) {  // CO-8
  coord.request_stop(failure("First"));
  EXPECT_EQ(join_error(), "First");
  coord.clear_stop();
  EXPECT_FALSE(coord.should_stop());
  EXPECT_FALSE(coord.joined());
  coord.request_stop(failure("Second"));
  EXPECT_EQ(join_error(), "Second");
}

TEST_F(CoordinatorTest, AStopWithAReasonLastsAsLongAsThat) {
  auto reason = std::make_shared<int>(0);
  coord.request_stop_while(reason);
  coord.request_stop(failure("First"));
  EXPECT_EQ(join_error(), "First");
  coord.clear_stop();
  EXPECT_TRUE(coord.should_stop());
  EXPECT_EQ(coord.reported_error(), nullptr);
  reason.reset();
  EXPECT_TRUE(coord.should_stop()) << "nobody has cleared it";
  coord.clear_stop();
  EXPECT_FALSE(coord.should_stop());
}

TEST_F(CoordinatorTest, AfterAJoinAnErrorComesBackAtOnce) {  // CO-9
  coord.request_stop();
  coord.join();
  EXPECT_THROW(coord.request_stop(failure("Too late")), InternalError);
  EXPECT_NO_THROW(coord.request_stop(std::make_exception_ptr(OutOfRangeError("clean"))));
  coord.clear_stop();
  EXPECT_NO_THROW(coord.request_stop(failure("After clear")));
  EXPECT_EQ(join_error(), "After clear");
}

TEST_F(CoordinatorTest, JoinForgetsItsThreads) {  // CO-12
  start_deaf_thread("slow");
  coord.request_stop();
  join_error({.stop_grace = Seconds{0}});
  EXPECT_EQ(join_error({.stop_grace = Seconds{0}}), "");
}

TEST_F(CoordinatorTest, TheReportedErrorCanBeRaisedBeforeTheJoin) {  // CO-12
  EXPECT_NO_THROW(coord.raise_requested_exception());
  coord.request_stop(failure("now"));
  EXPECT_THROW(coord.raise_requested_exception(), InternalError);
}

TEST_F(CoordinatorTest, AReportedErrorIsLoggedAndACleanStopIsNot) {  // CO-14
  std::vector<std::string> lines;
  const LogSink before = set_log_sink([&](LogLevel level, const std::string& line) {
    EXPECT_EQ(level, LogLevel::kInfo);
    lines.push_back(line);
  });
  coord.request_stop(std::make_exception_ptr(OutOfRangeError("the end")));
  coord.request_stop(failure("disk full"));
  set_log_sink(before);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_THAT(lines[0], HasSubstr("Error reported to Coordinator: INTERNAL, disk full"));
}

TEST_F(CoordinatorTest, AnythingThatIsThrownCanBeReported) {  // unlike CO-15
  coord.request_stop(std::make_exception_ptr(7));
  EXPECT_THROW(coord.join(), int);
}

TEST_F(CoordinatorTest, AThreadThatComesAfterTheJoinIsForTheNext) {  // CO-12
  coord.request_stop();
  coord.join();
  start_deaf_thread("late");
  EXPECT_THAT(join_error({.stop_grace = Seconds{1}}), HasSubstr("threads still running: late"));
}

TEST_F(CoordinatorTest, AThreadThatCannotBeStartedIsNotWaitedFor) {
  const NoNewThreads full;
  try {
    coord.start_thread("one too many", [] {});
    ADD_FAILURE() << "it was started";
  } catch (const ResourceExhaustedError& error) {
    EXPECT_THAT(error.what(), HasSubstr("thread one too many cannot be started: "));
  }
  coord.request_stop();
  EXPECT_EQ(join_error({.stop_grace = Seconds{1}}), "");
}

TEST(Coordinator, AThreadCanStayAfterTheStopUntilItIsJoined) {
  const Coordinator coord;
  std::atomic<bool> stayed{false}, told{false};
  coord.start_thread("stays", [&] {
    coord.wait_for_stop();
    stayed = !coord.wait_for_join(Seconds{0});
    told = coord.wait_for_join(Seconds{1000});
  });
  coord.request_stop();
  while (!stayed) std::this_thread::yield();
  coord.join();
  EXPECT_TRUE(told);
  EXPECT_TRUE(coord.wait_for_join(Seconds{1000})) << "it was joined already";
}

TEST_F(CoordinatorTest, AfterAClearedStopNoThreadWaitsForAJoin) {
  coord.request_stop();
  coord.clear_stop();
  EXPECT_TRUE(coord.wait_for_join(Seconds{1000}));
}

TEST_F(CoordinatorTest, NoThreadsAtAllIsFine) {  // CO-3
  coord.join({}, {});
  EXPECT_TRUE(coord.joined());
}

TEST_F(CoordinatorTest, AThreadCannotWaitForItself) {
  coord.start_thread("self", [this] { coord.join(); });
  EXPECT_THAT(join_error(), HasSubstr("thread self cannot join itself"));
}

}  // namespace
}  // namespace longhaul
