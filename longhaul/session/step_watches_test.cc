#include "longhaul/session/step_watches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "longhaul/base/error.h"
#include "longhaul/graph/scope.h"

namespace longhaul {
namespace {

class StepWatchesTest : public ::testing::Test {
 protected:
  static Output variable(const Scope& scope, const std::string& name, DType dtype) {
    return scope.add("VariableV2", name, {}, {{"dtype", dtype}, {"shape", Shape()}}).output();
  }
  std::shared_ptr<const void> watch(int64_t every) {
    return watches_.add({.step = step_, .every = every, .passed = [this] { ++passed_; }}, read_);
  }
  void make_step(int64_t now) {
    now_ = now;
    watches_.look(read_);
  }

  Graph graph_;
  Scope root_{graph_};
  const Output step_ = variable(root_, "step", kInt64);
  std::atomic<int64_t> now_{0};
  const StepWatches::Read read_ = [this](const Output&) { return now_.load(); };
  StepWatches watches_;
  std::atomic<int> passed_{0};
};

TEST_F(StepWatchesTest, EachMarkIsToldOfOnceAlsoAfterAStepBack) {
  EXPECT_TRUE(watches_.is_empty());
  now_ = 8;
  const auto watched = watch(5);
  EXPECT_FALSE(watches_.is_empty());
  make_step(9);
  EXPECT_EQ(passed_, 0);
  make_step(10);
  make_step(11);
  EXPECT_EQ(passed_, 1);
  make_step(23);
  EXPECT_EQ(passed_, 2) << "several marks at once are one";
  make_step(3);
  EXPECT_EQ(passed_, 2);
  make_step(5);
  EXPECT_EQ(passed_, 3);
}

TEST_F(StepWatchesTest, AWatchEndsWithItsHandle) {
  auto watched = watch(1);
  watched.reset();
  make_step(7);
  EXPECT_EQ(passed_, 0);
  EXPECT_TRUE(watches_.is_empty());
}

TEST_F(StepWatchesTest, WhatIsNoStepIsRefused) {
  const StepWatch text{.step = variable(root_, "text", kString)}, none{}, never{.step = step_, .every = 0};
  for (const StepWatch& watch : {text, none, never})
    EXPECT_THROW(static_cast<void>(watches_.add(watch, read_)), InvalidArgumentError);
  const Output read = root_.add("Identity", "read", {step_}).output();
  EXPECT_EQ(watched_variable({.step = read}), step_);
}

TEST_F(StepWatchesTest, ARunIsNotHarmedByAReadOrACallbackThatFails) {
  const auto bad = watches_.add({.step = step_, .passed = [] { throw InternalError("a bad callback"); }}, read_);
  const auto good = watch(1);
  make_step(1);
  EXPECT_EQ(passed_, 1);
  watches_.look([](const Output&) -> int64_t { throw UnavailableError("nobody answers"); });
  make_step(2);
  EXPECT_EQ(passed_, 2);
}

TEST_F(StepWatchesTest, ThreadsThatOvertakeEachOtherPassEachMarkOnce) {
  constexpr int kSteps = 2000, kEvery = 10, kWatchingThreads = 4;
  const auto watched = watch(kEvery);
  std::vector<std::thread> threads;
  for (int t = 0; t < kWatchingThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kSteps; ++i) {
        ++now_;
        watches_.look(read_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(passed_, 0);
  EXPECT_LE(passed_, kWatchingThreads * kSteps / kEvery);
}

}  // namespace
}  // namespace longhaul
