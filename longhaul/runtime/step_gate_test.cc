#include "longhaul/runtime/step_gate.h"

#include <gtest/gtest.h>

#include <thread>

#include "longhaul/base/clock.h"

namespace longhaul {
namespace {

constexpr Seconds kStep{0.5};

// Leaves so long after a snapshot was asked for.
std::thread leaving(StepGate& gate) {
  gate.enter();
  return std::thread([&gate] {
    while (!gate.is_shut()) std::this_thread::yield();
    std::this_thread::sleep_for(kStep);
    gate.leave();
  });
}

TEST(StepGate, ASnapshotTellsHowLongItWaitedForAStep) {
  StepGate gate;
  std::thread step = leaving(gate);
  gate.snapshot([] {});
  EXPECT_GE(StepGate::last_wait(), kStep * 0.9);
  step.join();
  gate.snapshot([] {});
  EXPECT_EQ(StepGate::last_wait(), Seconds{0}) << "nobody was inside";
}

TEST(StepGate, WhatHoldsAnotherStepUpIsNoWait) {
  StepGate gate;
  std::thread step = leaving(gate);
  std::thread held_up([&gate] {
    while (!gate.is_shut()) std::this_thread::yield();
    gate.enter();
    gate.leave();
  });
  gate.snapshot([] {});
  EXPECT_LT(StepGate::last_wait(), kStep * 0.9);
  step.join();
  held_up.join();
}

}  // namespace
}  // namespace longhaul
