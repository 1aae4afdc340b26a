#include "longhaul/runtime/state/state_changes.h"

#include <gtest/gtest.h>

#include <future>

#include "longhaul/base/error.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

constexpr Seconds kLong{1e6};

TEST(StateChanges, AChangeBeforeTheWaitIsNotMissed) {
  testing::FakeClock clock;
  StateChanges changes(clock);
  const uint64_t seen = changes.generation();
  changes.bump();
  EXPECT_NE(changes.wait(seen, kLong, nullptr), seen);
}

TEST(StateChanges, AChangeWakesWhoWaits) {
  testing::FakeClock clock;
  StateChanges changes(clock);
  const uint64_t seen = changes.generation();
  auto waits = std::async(std::launch::async, [&] { return changes.wait(seen, kLong, nullptr); });
  changes.bump();
  EXPECT_NE(waits.get(), seen);
}

TEST(StateChanges, TheWaitEndsWithItsTime) {
  testing::FakeClock clock(testing::FakeClock::Waits::kPassTime);
  StateChanges changes(clock);
  const uint64_t seen = changes.generation();
  const Seconds start = clock.now();
  EXPECT_EQ(changes.wait(seen, Seconds{30}, nullptr), seen);
  EXPECT_GE(clock.now() - start, Seconds{30});
  EXPECT_EQ(changes.wait(seen, Seconds{0}, nullptr), seen) << "a look";
}

TEST(StateChanges, TheWaitEndsWithTheSession) {
  testing::FakeClock clock;
  StateChanges changes(clock);
  Cancellation session;
  auto waits = std::async(std::launch::async, [&] { return changes.wait(changes.generation(), kLong, &session); });
  session.abort("its containers were reset");
  EXPECT_THROW(waits.get(), AbortedError);
  EXPECT_THROW(changes.wait(changes.generation(), kLong, &session), AbortedError) << "also one that comes too late";
}

}  // namespace
}  // namespace longhaul
