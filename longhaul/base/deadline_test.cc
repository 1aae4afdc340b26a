#include "longhaul/base/deadline.h"

#include <gtest/gtest.h>

#include <thread>

namespace longhaul {
namespace {

// A clock that stands still, unless somebody waits in vain for so long that the test has failed.
class StandingClock : public Clock {
 public:
  Seconds now() const override { return Seconds{now_}; }
  double wall_time() const override { return now_; }
  void wait_for(CondVar& cond, Mutex& mutex, Seconds timeout) override REQUIRES(mutex) {
    const Seconds start = Clock::real().now();
    cond.wait_for(mutex, kInVain);
    if (Clock::real().now() - start >= kInVain) now_ = now_ + timeout.count();
  }
  void advance(Seconds by) { now_ = now_ + by.count(); }

 private:
  static constexpr Seconds kInVain{20};
  std::atomic<double> now_{1000};
};

TEST(Deadline, IsNotSetUntilItIsBroughtForwardAndNeverPutOff) {
  StandingClock clock;
  Deadline deadline(clock);
  EXPECT_FALSE(deadline.is_set());
  EXPECT_EQ(deadline.left(), std::nullopt);
  deadline.bring_forward(Seconds{100});
  deadline.bring_forward(Seconds{10});
  deadline.bring_forward(Seconds{50});
  EXPECT_TRUE(deadline.is_set());
  EXPECT_EQ(deadline.left(), Seconds{10});
  clock.advance(Seconds{11});
  EXPECT_EQ(deadline.left(), Seconds{-1});
}

TEST(Deadline, LimitsAWaitToWhatIsLeft) {
  StandingClock clock;
  Deadline deadline(clock);
  Mutex mutex;
  CondVar changed;
  const Deadline::Wait limited(&deadline, mutex, changed), free(nullptr, mutex, changed);
  EXPECT_EQ(limited.at_most(Seconds{60}), Seconds{60});
  deadline.bring_forward(Seconds{10});
  EXPECT_EQ(limited.at_most(Seconds{60}), Seconds{10});
  EXPECT_EQ(limited.at_most(Seconds{3}), Seconds{3});
  EXPECT_EQ(free.at_most(Seconds{60}), Seconds{60});
}

TEST(Deadline, TellsWhenHalfOfItsTimeIsOverButNotBeforeTheLeast) {
  StandingClock clock;
  Deadline deadline(clock);
  const auto half = half_time(&deadline, clock), patient = half_time(&deadline, clock, Seconds{3});
  EXPECT_EQ(half(), std::nullopt);
  EXPECT_EQ(patient(), std::nullopt);
  const Seconds start = clock.now();
  deadline.bring_forward(Seconds{4});
  EXPECT_EQ(half(), start + Seconds{2});
  EXPECT_EQ(patient(), start + Seconds{3});
  EXPECT_EQ(half_time(nullptr, clock)(), std::nullopt);
}

TEST(Deadline, LeavesMoreThanHalfOfItsTimeToWhatCountsForMore) {
  StandingClock clock;
  Deadline deadline(clock);
  deadline.bring_forward(Seconds{30});
  const auto short_wait = half_time(&deadline, clock, Seconds{1}, Seconds{5});
  const auto least = half_time(&deadline, clock, Seconds{1}, Seconds{0});
  const Seconds start = clock.now();
  EXPECT_EQ(short_wait(), start + Seconds{5});
  EXPECT_EQ(least(), start + Seconds{1});
  clock.advance(Seconds{3});
  EXPECT_EQ(short_wait(), start + Seconds{5});
  deadline.bring_forward(Seconds{5});
  EXPECT_EQ(short_wait(), start + Seconds{4}) << "half of what was left";
}

TEST(Deadline, NotifiesAsLongAsItsNoticeIsKept) {
  StandingClock clock;
  Deadline deadline(clock);
  std::vector<std::optional<Seconds>> seen;
  {
    const Deadline::Notice notice(&deadline, [&] { seen.push_back(deadline.left()); });
    const Deadline::Notice of_none(nullptr, [&] { ADD_FAILURE(); });
    deadline.bring_forward(Seconds{10});
    deadline.bring_forward(Seconds{4});
  }
  deadline.bring_forward(Seconds{1});
  EXPECT_EQ(seen, (std::vector<std::optional<Seconds>>{Seconds{10}, Seconds{4}}));
}

TEST(Deadline, EndsAWaitThatHasBegun) {
  StandingClock clock;
  Deadline deadline(clock);
  Mutex mutex;
  CondVar changed;
  bool is_waiting = false;
  std::thread other([&] {
    const auto has_begun = [&] {
      MutexLock lock(mutex);
      return is_waiting;
    };
    while (!has_begun()) std::this_thread::yield();
    deadline.bring_forward(Seconds{0});
  });
  const Seconds end = clock.now() + Seconds{60};
  {
    const Deadline::Wait wait(&deadline, mutex, changed);
    MutexLock lock(mutex);
    while (wait.at_most(end - clock.now()) > Seconds{0}) {
      is_waiting = true;
      clock.wait_for(changed, mutex, wait.at_most(end - clock.now()));
    }
  }
  other.join();
  EXPECT_LT(clock.now(), end) << "it was notified";
}

}  // namespace
}  // namespace longhaul
