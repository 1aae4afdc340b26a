#include "longhaul/train/checkpointing/mirror_queue.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "longhaul/base/error.h"
#include "longhaul/io/files/rate_limit.h"
#include "longhaul/testing/error_fixture.h"
#include "longhaul/train/interrupted_clock_fixture.h"

namespace longhaul {
namespace {

// By a clock on which whoever waits passes the time.
class MirrorQueueTest : public ::testing::Test {
 protected:
  testing::FakeClock clock{testing::FakeClock::Waits::kPassTime};
  SaveAttempts attempts{{.first_wait = Seconds{5}, .clock = &clock}};
  MirrorQueue queue{attempts, clock};
};

TEST_F(MirrorQueueTest, OnlyTheNewestIsWanted) {
  queue.add("model.ckpt-1");
  queue.add("model.ckpt-2");
  EXPECT_EQ(queue.next(), "model.ckpt-2");
  queue.drop("model.ckpt-2");
  EXPECT_EQ(queue.finish(Seconds{0}), "");
}

TEST_F(MirrorQueueTest, WhatIsReplacedWhileItIsCopiedIsWantedAgain) {
  queue.add("model.ckpt-1");
  EXPECT_EQ(queue.next(), "model.ckpt-1");
  queue.add("model.ckpt-1");
  queue.drop("model.ckpt-1");
  EXPECT_EQ(queue.next(), "model.ckpt-1");
}

TEST_F(MirrorQueueTest, WhatHasFailedIsGivenAgainWhenItsTimeHasCome) {
  queue.add("model.ckpt-1");
  EXPECT_EQ(queue.next(), "model.ckpt-1");
  attempts.failed(std::make_exception_ptr(UnavailableError("unmounted")));
  const Seconds failed_at = clock.now();
  EXPECT_EQ(queue.next(), "model.ckpt-1");
  EXPECT_GE(clock.now() - failed_at, Seconds{5});
}

TEST_F(MirrorQueueTest, TheEndTellsWhatIsMissingAndNothingIsGivenAfterIt) {
  queue.add("model.ckpt-1");
  EXPECT_NO_THROW(queue.pause(Seconds{0}));
  EXPECT_EQ(queue.finish(Seconds{3}), "model.ckpt-1");
  EXPECT_EQ(queue.next(), "");
  EXPECT_THROW(queue.pause(Seconds{0}), CancelledError);
}

TEST(MirrorQueue, ACopyThatPausesIsWokenByItsEnd) {
  const SaveAttempts attempts({.first_wait = Seconds{5}});
  MirrorQueue queue(attempts, Clock::real());
  queue.add("model.ckpt-1");
  RateLimit limit(1, Clock::real(), [&](Seconds time) { return queue.pause(time); });
  limit.take(1000);
  auto copying = std::async(std::launch::async, [&] { return error_of<CancelledError>([&] { limit.take(1); }); });
  queue.abandon();
  EXPECT_EQ(copying.wait_for(std::chrono::seconds(60)), std::future_status::ready) << "and not after 1000 s";
  if (copying.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    EXPECT_EQ(copying.get(), "the mirror is closed");
  }
}

TEST(MirrorQueue, ADeadlineThatIsSetMeanwhileEndsTheWaitForTheLast) {
  InterruptedClock clock;
  Deadline deadline(clock);
  clock.event = [&] { deadline.bring_forward(Seconds{0}); };
  const SaveAttempts attempts({.clock = &clock});
  MirrorQueue queue(attempts, clock);
  queue.add("model.ckpt-1");
  const Seconds start = clock.now();
  EXPECT_EQ(queue.finish(Seconds{60}, &deadline), "model.ckpt-1");
  EXPECT_EQ(clock.now(), start);
  clock.join();
}

TEST_F(MirrorQueueTest, HalfOfWhatADeadlineLeavesIsForWhatFollows) {
  Deadline deadline(clock);
  queue.add("model.ckpt-1");
  deadline.bring_forward(Seconds{10});
  const Seconds start = clock.now();
  EXPECT_EQ(queue.finish(Seconds{60}, &deadline), "model.ckpt-1");
  EXPECT_NEAR((clock.now() - start).count(), 5, 0.01);
}

// The time stands still: only what needs no time happens.
TEST(MirrorQueue, ARetryThatComesTooLateIsNotWaitedFor) {
  testing::FakeClock clock;
  SaveAttempts attempts({.first_wait = Seconds{100}, .longest_wait = Seconds{100}, .clock = &clock});
  MirrorQueue queue(attempts, clock);
  queue.add("model.ckpt-1");
  std::thread worker([&] {
    while (!queue.next().empty()) attempts.failed(std::make_exception_ptr(UnavailableError("unmounted")));
  });
  EXPECT_EQ(queue.finish(Seconds{60}), "model.ckpt-1");
  worker.join();
  EXPECT_GE(attempts.status().consecutive_failures, 1);
}

TEST(MirrorQueue, WhatHasFailedIsTriedAtTheEndWithoutAWait) {
  testing::FakeClock clock;
  SaveAttempts attempts({.first_wait = Seconds{100}, .longest_wait = Seconds{100}, .clock = &clock});
  MirrorQueue queue(attempts, clock);
  queue.add("model.ckpt-1");
  EXPECT_EQ(queue.next(), "model.ckpt-1");
  attempts.failed(std::make_exception_ptr(UnavailableError("unmounted")));
  std::thread worker([&] {
    for (std::string prefix = queue.next(); !prefix.empty(); prefix = queue.next()) queue.drop(prefix);
  });
  EXPECT_EQ(queue.finish(Seconds{60}), "");
  worker.join();
}

TEST_F(MirrorQueueTest, OnceItIsAbandonedNobodyWaits) {
  queue.add("model.ckpt-1");
  queue.abandon();
  EXPECT_EQ(queue.next(), "");
  const Seconds before = clock.now();
  queue.finish(Seconds{60});
  EXPECT_EQ(clock.now(), before);
}

}  // namespace
}  // namespace longhaul
