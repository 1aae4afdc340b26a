#include "longhaul/io/files/rate_limit.h"

#include <gtest/gtest.h>

#include <cmath>

#include "longhaul/base/error.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

using testing::FakeClock;

TEST(RateLimit, BytesPassAtTheRate) {
  FakeClock clock(FakeClock::Waits::kPassTime);
  RateLimit limit(1e6, clock);
  const Seconds start = clock.now();
  for (int i = 0; i < 11; ++i) limit.take(200'000);
  EXPECT_NEAR((clock.now() - start).count(), 2.0, 1e-9);
}

TEST(RateLimit, TimeInWhichNothingWasTakenIsNotSavedUp) {
  FakeClock clock(FakeClock::Waits::kPassTime);
  RateLimit limit(1e6, clock);
  limit.take(1'000'000);
  clock.advance(Seconds(60));
  const Seconds start = clock.now();
  limit.take(500'000);
  EXPECT_EQ(clock.now(), start);
  limit.take(500'000);
  EXPECT_NEAR((clock.now() - start).count(), 0.5, 1e-9);
}

TEST(RateLimit, APauseOfTheCallersMayEndTheWait) {
  FakeClock clock;
  int pauses = 0;
  const auto pause = [&](Seconds time) {
    EXPECT_NEAR(time.count(), 1000 - 100 * pauses, 1e-6);
    if (++pauses == 3) throw CancelledError("enough");
    clock.advance(Seconds{100});  // it returns early
    return true;
  };
  RateLimit limit(1, clock, pause);
  limit.take(1000);
  EXPECT_THROW(limit.take(1), CancelledError);
  EXPECT_EQ(pauses, 3);
  clock.advance(Seconds{800});
  limit.take(1);
  EXPECT_EQ(pauses, 3) << "what was cancelled has not passed";
}

TEST(RateLimit, APauseMayLiftTheLimit) {
  FakeClock clock;
  int pauses = 0;
  const auto pause = [&](Seconds) { return ++pauses < 3; };
  RateLimit limit(1, clock, pause);
  for (int i = 0; i < 10; ++i) limit.take(1000);
  EXPECT_EQ(pauses, 3);
}

TEST(RateLimit, WithoutALimitNobodyWaits) {
  FakeClock clock(FakeClock::Waits::kPassTime);
  const Seconds start = clock.now();
  RateLimit limit(0, clock);
  for (int i = 0; i < 3; ++i) limit.take(uint64_t{1} << 40);
  EXPECT_EQ(clock.now(), start);
  EXPECT_THROW(RateLimit(-1, clock), InvalidArgumentError);
  EXPECT_THROW(RateLimit(std::nan(""), clock), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
