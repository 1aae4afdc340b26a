#include "longhaul/train/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>

namespace longhaul {
namespace {

TEST(StopSignals, ASignalRequestsTheStop) {  // unlike SV-66
  const Coordinator coord;
  const StopSignals signals(coord);
  EXPECT_EQ(signals.signal_received(), 0);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  EXPECT_EQ(signals.signal_received(), SIGTERM);
  EXPECT_NO_THROW(coord.raise_requested_exception());
}

TEST(StopSignals, TheStopOutlastsAClearing) {
  const Coordinator coord;
  const StopSignals signals(coord);
  raise(SIGTERM);
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
  coord.clear_stop();
  EXPECT_TRUE(coord.wait_for_stop(Seconds{60}));
}

TEST(StopSignals, TheFirstSignalIsTheOneThatCounts) {
  std::atomic<int> calls{0};
  const StopSignals signals([&](int) { ++calls; });
  raise(SIGINT);
  raise(SIGTERM);
  while (calls < 2) std::this_thread::yield();
  EXPECT_EQ(signals.signal_received(), SIGINT);
}

TEST(StopSignals, TheHandlersOfBeforeComeBack) {
  struct sigaction before {
  }, after{};
  sigaction(SIGINT, nullptr, &before);
  { const StopSignals signals(Coordinator{}); }
  sigaction(SIGINT, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(StopSignals, ThereIsOneAtATime) {
  const StopSignals signals(Coordinator{});
  EXPECT_THROW(StopSignals(Coordinator{}), FailedPreconditionError);
}

TEST(StopSignalsDeathTest, ASecondSignalOfAKindKills) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Coordinator coord;
        const StopSignals signals(coord);
        raise(SIGINT);
        coord.wait_for_stop(Seconds{60});
        raise(SIGINT);
      },
      ::testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace longhaul
