#include "longhaul/runtime/state/step_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "longhaul/base/error.h"
#include "longhaul/testing/fake_clock.h"

namespace longhaul {
namespace {

class StepGateWaits : public ::testing::Test {
 protected:
  void await_shut() {
    while (!gate.is_shut()) std::this_thread::yield();
  }

  testing::FakeClock clock;
  StepGate gate{clock};
};

TEST_F(StepGateWaits, ASnapshotTellsHowLongItWaitedForAStep) {
  gate.enter();
  std::thread step([this] {
    await_shut();
    clock.advance(Seconds{5});
    gate.leave();
  });
  gate.snapshot([] {});
  EXPECT_EQ(StepGate::last_wait(), Seconds{5});
  step.join();
  gate.snapshot([] {});
  EXPECT_EQ(StepGate::last_wait(), Seconds{0}) << "nobody was inside";
}

TEST_F(StepGateWaits, ASnapshotThatIsTakenLetsTheStepsOutsideIn) {
  gate.enter();
  std::thread snapshot([this] { gate.snapshot([] {}); });
  await_shut();
  std::thread step([this] {
    gate.enter();
    gate.leave();
  });
  gate.leave();
  snapshot.join();
  step.join();
}

TEST_F(StepGateWaits, ASnapshotThatIsGivenUpLetsTheStepsOutsideIn) {
  gate.enter();
  std::thread snapshot([this] { EXPECT_THROW(gate.snapshot([] {}, Seconds{5}), DeadlineExceededError); });
  await_shut();
  std::thread step([this] {
    gate.enter();
    gate.leave();
  });
  clock.advance(Seconds{6});
  snapshot.join();
  step.join();
  gate.leave();
}

TEST_F(StepGateWaits, WhatHoldsAnotherStepUpIsNoWait) {
  gate.enter();
  std::thread step([this] {
    await_shut();
    clock.advance(Seconds{2});
    const Seconds past = clock.now() - Seconds{1};
    EXPECT_THROW(gate.enter(past), DeadlineExceededError) << "another step, which finds the door shut";
    clock.advance(Seconds{5});
    gate.leave();
  });
  gate.snapshot([] {});
  EXPECT_EQ(StepGate::last_wait(), Seconds{2});
  step.join();
}

class StepGateIds : public StepGateWaits {
 protected:
  static constexpr Seconds kLease{3}, kTimeout{1};

  // A step on a thread of its own, which counts itself when it has been inside.
  std::thread step() {
    return std::thread([this] {
      gate.enter();
      ++steps;
      gate.leave();
    });
  }
  void expect_shut() { EXPECT_THROW(gate.enter(clock.now() - Seconds{1}), DeadlineExceededError); }

  std::atomic<int> steps{0};
};

TEST_F(StepGateIds, TheDoorStaysShutUntilItsIdHasTaken) {
  gate.shut("a", kLease, kTimeout);
  std::thread outside = step();
  expect_shut();
  int taken_at = -1;
  gate.take("a", [&] { taken_at = steps; }, kTimeout);
  EXPECT_EQ(taken_at, 0);
  outside.join();
  EXPECT_FALSE(gate.is_shut());
}

TEST_F(StepGateIds, OneIdAtATimeShuts) {
  gate.shut("a", kLease, kTimeout);
  EXPECT_EQ(gate.shut("b", kLease, kTimeout), StepGate::Door::kAnothers);
  gate.let_in("a", 7);
  EXPECT_THROW(gate.let_in("b", 7), AbortedError);
  std::thread waits([this] { EXPECT_EQ(gate.shut("b", kLease, kTimeout, kLease * 2), StepGate::Door::kShut); });
  gate.open("a");
  waits.join();
  expect_shut();
  EXPECT_EQ(gate.shut("a", kLease, kTimeout), StepGate::Door::kAnothers);
  clock.advance(kLease);
  EXPECT_EQ(gate.shut("a", kLease, kTimeout), StepGate::Door::kShut) << "the other's lease has ended";
  gate.open("a");
}

TEST_F(StepGateIds, ShutWaitsForTheStepsInside) {
  gate.enter();
  std::atomic<bool> left{false};
  std::thread inside([&] {
    await_shut();
    left = true;
    gate.leave();
  });
  gate.shut("a", kLease, kTimeout);
  EXPECT_TRUE(left);
  inside.join();
  gate.open("a");
}

TEST_F(StepGateIds, AStepThatStaysInsideEndsTheAttemptAndLetsOthersIn) {
  gate.enter();
  std::thread shuts([this] { EXPECT_THROW(gate.shut("a", kLease, kTimeout), DeadlineExceededError); });
  await_shut();
  clock.advance(kTimeout * 2);
  shuts.join();
  EXPECT_FALSE(gate.is_shut());
  std::thread other = step();
  other.join();
  gate.leave();
}

TEST_F(StepGateIds, ALeaseThatEndsLetsStepsInAndItsOwnerKnow) {
  gate.shut("a", kLease, kTimeout);
  std::thread outside = step();
  expect_shut();
  clock.advance(kLease);
  outside.join();
  EXPECT_EQ(steps, 1);
  EXPECT_THROW(gate.take("a", [] { ADD_FAILURE() << "a step was made meanwhile"; }, kTimeout), AbortedError);
  EXPECT_THROW(gate.let_in("a", 7), AbortedError);
}

TEST_F(StepGateIds, ShutAgainRenewsTheLease) {
  EXPECT_EQ(gate.shut("a", kLease, kTimeout), StepGate::Door::kShut);
  clock.advance(kLease / 2);
  EXPECT_EQ(gate.shut("a", kLease, kTimeout), StepGate::Door::kRenewed);
  clock.advance(kLease * 0.75);
  EXPECT_TRUE(gate.is_shut());
  bool taken = false;
  gate.take("a", [&] { taken = true; }, kTimeout);
  EXPECT_TRUE(taken);
  EXPECT_FALSE(gate.is_shut());
}

TEST_F(StepGateIds, ShutAgainAfterTheLeaseSaysThatTheDoorWasOpen) {
  gate.shut("a", kLease, kTimeout);
  clock.advance(kLease);
  EXPECT_EQ(gate.shut("a", kLease, kTimeout), StepGate::Door::kShut);
  gate.open("a");
}

TEST_F(StepGateIds, AStepCommittedElsewhereEntersPastTheDoorBeforeTheTake) {
  gate.shut("a", kLease, kTimeout);
  gate.let_in("a", 7);
  EXPECT_THROW(gate.enter(clock.now() - Seconds{1}, 8), DeadlineExceededError) << "another step";
  gate.enter(Seconds{0}, 7);
  std::atomic<bool> written{false};
  std::thread taking([&] { gate.take("a", [&] { EXPECT_TRUE(written); }, kTimeout); });
  written = true;
  gate.leave();
  taking.join();
  EXPECT_FALSE(gate.is_shut());
  gate.shut("b", kLease, kTimeout);
  EXPECT_THROW(gate.enter(clock.now() - Seconds{1}, 7), DeadlineExceededError) << "who let it in is gone";
  gate.open("b");
}

TEST_F(StepGateIds, AStepThatWaitsOutsideIsLetIn) {
  gate.shut("a", kLease, kTimeout);
  std::thread outside([this] {
    gate.enter(Seconds{0}, 7);
    ++steps;
    gate.leave();
  });
  expect_shut();
  EXPECT_EQ(steps, 0);
  gate.let_in("a", 7);
  outside.join();
  EXPECT_TRUE(gate.is_shut());
  gate.open("a");
}

TEST_F(StepGateIds, ATakeBesideAStepThatStaysGivesUpAndOpens) {
  testing::FakeClock passing(testing::FakeClock::Waits::kPassTime);
  StepGate own(passing);
  own.shut("a", kLease, kTimeout);
  own.let_in("a", 7);
  own.enter(Seconds{0}, 7);
  EXPECT_THROW(own.take("a", [] { ADD_FAILURE() << "a step is inside"; }, kTimeout), DeadlineExceededError);
  EXPECT_FALSE(own.is_shut());
  own.leave();
}

TEST_F(StepGateIds, OpenIsHarmlessForAnybodyElse) {
  gate.open("never shut");
  gate.shut("a", kLease, kTimeout);
  gate.open("b");
  EXPECT_TRUE(gate.is_shut());
  gate.open("a");
  gate.open("a");
  EXPECT_FALSE(gate.is_shut());
}

TEST_F(StepGateIds, ALocalSnapshotIsTakenBehindADoorThatIsShut) {
  gate.shut("a", kLease, kTimeout);
  bool taken = false;
  gate.snapshot([&] { taken = true; });
  EXPECT_TRUE(taken);
  EXPECT_TRUE(gate.is_shut());
  gate.open("a");
}

// Both count under the door: a take must never see a step half made.
TEST(StepGateRace, FrozenByTwoBesideStepsNoTakeSeesTheMiddleOfAStep) {
  StepGate gate;
  int first = 0, second = 0;  // guarded by the gate
  std::atomic<bool> begun{false}, stop{false};
  std::atomic<int> torn{0}, taken{0};
  std::thread steps([&] {  // the only one that writes
    while (!stop) {
      gate.enter();
      ++first;
      ++second;
      gate.leave();
      begun = true;
    }
  });
  while (!begun) std::this_thread::yield();
  const auto freeze = [&](const std::string& id) {
    for (int i = 0; i < 500; ++i) {
      const std::string own = id + std::to_string(i);
      EXPECT_EQ(gate.shut(own, Seconds{60}, Seconds{60}, Seconds{60}), StepGate::Door::kShut);
      if (i % 7 == 0) gate.open(own);
      if (i % 7 == 0) continue;
      gate.take(own, [&] { torn += first != second; }, Seconds{60});
      ++taken;
    }
  };
  std::thread one(freeze, "one "), other(freeze, "other ");
  one.join();
  other.join();
  stop = true;
  steps.join();
  EXPECT_EQ(torn, 0);
  EXPECT_EQ(taken, 2 * 428);
  EXPECT_FALSE(gate.is_shut());
}

}  // namespace
}  // namespace longhaul
