#include "longhaul/train/coordination/looper_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

using testing::FakeClock;

class LooperThreadTest : public ::testing::Test {
 protected:
  FakeClock clock{FakeClock::Waits::kPassTime};
  Coordinator coord{{.clock = &clock}};
};

TEST_F(LooperThreadTest, RunsBackToBackUntilTheStop) {  // LT-1, LT-2
  int n = 3;
  const auto count_down = [&] {
    if (--n == 0) coord.request_stop();
  };
  LooperThread::loop(coord, std::nullopt, count_down);
  coord.join();
  EXPECT_EQ(n, 0);
}

TEST_F(LooperThreadTest, AnIntervalOfNoTimeRunsUntilTheStopToo) {  // LT-1
  int n = 3;
  const auto count_down = [&](int by, int& left) {
    left -= by;
    if (left == 0) coord.request_stop();
  };
  LooperThread::loop(coord, Seconds{0}, [&] { count_down(1, n); });
  coord.join();
  EXPECT_EQ(n, 0);
}

TEST_F(LooperThreadTest, ComesAtOnceAndThenAtAFixedRate) {  // LT-2
  std::vector<double> times;
  const Seconds start = clock.now();
  LooperThread::loop(coord, Seconds{10}, [&] {
    times.push_back((clock.now() - start).count());
    clock.advance(Seconds{times.size() == 2 ? 25.0 : 1.0});  // the second call stalls
    if (times.size() == 6) coord.request_stop();
  });
  while (!coord.should_stop()) std::this_thread::yield();  // a wait of ours would pass time as well
  coord.join();
  EXPECT_EQ(times, (std::vector<double>{0, 10, 35, 36, 40, 50}));
}

TEST_F(LooperThreadTest, MadeAndStartedInOneGo) {  // LT-5, LT-1
  int calls = 0;
  const auto add = [&](int more) { calls += more; };
  const auto looper = LooperThread::loop(coord, Seconds{1}, [&, more = 5] {
    add(more);
    coord.request_stop();
  });
  coord.join();
  EXPECT_EQ(calls, 5);
}

TEST_F(LooperThreadTest, OneThatWasNotStartedIsNotWaitedFor) {  // unlike LT-4
  const auto looper = std::make_shared<LooperThread>(coord, Seconds{1});
  coord.join();
  EXPECT_TRUE(coord.joined());
}

TEST_F(LooperThreadTest, ItIsStartedOnce) {
  coord.request_stop();
  const auto looper = LooperThread::loop(coord, Seconds{1}, [] {});
  EXPECT_THROW(looper->start(), FailedPreconditionError);
  coord.join();
}

TEST_F(LooperThreadTest, AStragglerMayOutliveItsOwner) {
  const auto release = std::make_shared<std::atomic<bool>>(false);
  std::weak_ptr<LooperThread> watched;
  {
    const Coordinator short_lived;
    watched = LooperThread::loop(short_lived, std::nullopt, [release] {
      while (!*release) std::this_thread::yield();
    });
    short_lived.request_stop();
    short_lived.join({.stop_grace = Seconds{0}, .ignore_live_threads = true});
  }
  *release = true;
  while (!watched.expired()) std::this_thread::yield();
}

TEST_F(LooperThreadTest, AStopEndsItsWait) {  // LT-2
  const Coordinator real;
  LooperThread::loop(real, Seconds{3600}, [&real] { real.request_stop(); });
  real.join();
}

TEST_F(LooperThreadTest, AnErrorStopsAll) {  // LT-3
  LooperThread::loop(coord, Seconds{1}, [] { throw InternalError("loop"); });
  EXPECT_THROW(coord.join(), InternalError);
}

class Recorder : public LooperThread {
 public:
  using LooperThread::LooperThread;
  std::vector<std::string> calls;
  bool fails = false;

 protected:
  void start_loop() override { calls.push_back("start"); }
  void run_loop() override {
    calls.push_back("run");
    if (fails) throw OutOfRangeError("the end");
    coord().request_stop();
  }
  void stop_loop() override { calls.push_back("stop"); }
};

TEST_F(LooperThreadTest, TheEndsOfTheLoopCanBeOverridden) {  // LT-3
  const auto looper = std::make_shared<Recorder>(coord, Seconds{1});
  looper->start();
  coord.join();
  EXPECT_EQ(looper->calls, (std::vector<std::string>{"start", "run", "stop"}));
}

TEST_F(LooperThreadTest, AfterAnErrorThereIsNoStopLoop) {  // LT-3
  const auto looper = std::make_shared<Recorder>(coord, std::nullopt);
  looper->fails = true;
  looper->start();
  coord.join();
  EXPECT_EQ(looper->calls, (std::vector<std::string>{"start", "run"}));
}

}  // namespace
}  // namespace longhaul
