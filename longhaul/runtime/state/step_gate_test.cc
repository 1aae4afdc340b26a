#include "longhaul/runtime/state/step_gate.h"

#include <gtest/gtest.h>

#include <thread>

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

}  // namespace
}  // namespace longhaul
