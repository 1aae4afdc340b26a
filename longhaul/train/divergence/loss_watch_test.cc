#include "longhaul/train/divergence/loss_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

using Verdict = LossWatch::Verdict;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

LossWatchOptions short_watch() {
  return {.window = 10, .warm_up = 5, .in_a_row = 3};
}

// Feeds the losses, beginning with this step, and returns the last verdict.
Verdict feed(LossWatch& watch, const std::vector<double>& losses, int64_t step = 0) {
  Verdict last = Verdict::kGood;
  for (const double loss : losses) last = watch.look(step++, loss);
  return last;
}

std::vector<double> noisy(int count) {
  std::mt19937 dice(5);
  std::vector<double> losses;
  for (int i = 0; i < count; ++i) losses.push_back(2.0 / (1 + 0.1 * i) + 0.001 * static_cast<double>(dice() % 100));
  return losses;
}

TEST(LossWatch, NanAndInfinityAreBadAtOnceFromTheFirstStepOn) {
  for (const double loss : {kNan, kInfinity, -kInfinity}) {
    LossWatch watch(short_watch());
    EXPECT_EQ(watch.look(7, loss), Verdict::kBad);
    EXPECT_EQ(watch.first_bad_step(), 7);
  }
}

TEST(LossWatch, OneThatStandsOutIsNotBadButAFewInARowAre) {
  LossWatch watch(short_watch());
  EXPECT_EQ(feed(watch, noisy(20)), Verdict::kGood);
  EXPECT_EQ(watch.look(20, 50), Verdict::kHigh);
  EXPECT_EQ(watch.look(21, 0.7), Verdict::kGood);
  EXPECT_EQ(watch.first_bad_step(), -1);
  EXPECT_EQ(watch.look(22, 50), Verdict::kHigh);
  EXPECT_EQ(watch.look(23, 60), Verdict::kHigh);
  EXPECT_EQ(watch.look(24, 40), Verdict::kBad);
  EXPECT_EQ(watch.first_bad_step(), 22);
}

TEST(LossWatch, HighLossesDoNotMoveTheMedian) {
  LossWatch watch({.window = 4, .warm_up = 4, .in_a_row = 100});
  feed(watch, {1, 1.01, 0.99, 1});
  for (int i = 0; i < 50; ++i) EXPECT_EQ(watch.look(4 + i, 100), Verdict::kHigh);
  EXPECT_EQ(watch.median(), 1);
}

TEST(LossWatch, AFallIsNeverBad) {
  LossWatch watch(short_watch());
  feed(watch, {9, 9, 9, 9, 9, 9});
  EXPECT_EQ(feed(watch, {0.001, 1e-9, 0, -5, -500}), Verdict::kGood);
}

TEST(LossWatch, AConstantLossAndOneNearZeroMayMoveALittle) {
  LossWatch constant(short_watch());
  feed(constant, {0.7, 0.7, 0.7, 0.7, 0.7, 0.7});
  EXPECT_EQ(constant.look(6, 0.9), Verdict::kGood) << "more than 0.1, but not twice as much";
  LossWatch zero(short_watch());
  feed(zero, {0, 0, 0, 0, 1e-12, 0});
  EXPECT_EQ(zero.look(6, 0.05), Verdict::kGood);
  EXPECT_EQ(zero.look(7, 0.5), Verdict::kHigh);
}

TEST(LossWatch, NoRiseIsTooFarDuringTheWarmUpOrIfThatIsSwitchedOff) {
  LossWatch watch(short_watch());
  EXPECT_EQ(feed(watch, {1, 1, 1, 1, 1000}), Verdict::kGood);
  LossWatch off({.window = 10, .warm_up = 5, .deviations = 0});
  feed(off, {1, 1, 1, 1, 1, 1});
  EXPECT_EQ(feed(off, {1e9, 1e9, 1e9}), Verdict::kGood);
  EXPECT_EQ(off.look(9, kNan), Verdict::kBad);
}

TEST(LossWatch, AWidelyScatteredLossMayRiseFurther) {
  LossWatch watch(short_watch());
  feed(watch, {1, 9, 2, 8, 1, 9, 2, 8, 1, 9});
  EXPECT_EQ(watch.look(10, 80), Verdict::kGood);
  EXPECT_EQ(watch.look(11, 800), Verdict::kHigh);
}

TEST(LossWatch, WithItsStateAnotherGoesOnWithTheSameVerdicts) {
  std::vector<double> losses = noisy(30);
  losses[20] = 40;
  losses[26] = losses[27] = losses[28] = 30;
  for (size_t cut = 0; cut < losses.size(); ++cut) {
    LossWatch whole(short_watch()), before(short_watch()), after(short_watch());
    for (size_t i = 0; i < losses.size(); ++i) {
      const auto step = static_cast<int64_t>(i);
      const Verdict expected = whole.look(step, losses[i]);
      if (i == cut) after.set_state(before.state());
      EXPECT_EQ((i < cut ? before : after).look(step, losses[i]), expected) << "cut at " << cut << ", step " << i;
      EXPECT_EQ(whole.first_bad_step(), (i < cut ? before : after).first_bad_step());
    }
  }
}

TEST(LossWatch, WhatIsNoStateBeginsAnew) {
  for (const std::vector<double>& state :
       {std::vector<double>{}, {1}, {-1, 0, 1}, {0.5, 0, 1}, {0, kNan, 1}, {0, 0, kNan}, {0, 0, kInfinity}}) {
    LossWatch watch(short_watch());
    feed(watch, {1, 1, 1, 1, 1, 1});
    watch.set_state(state);
    EXPECT_TRUE(std::isnan(watch.median()));
    EXPECT_EQ(watch.first_bad_step(), -1);
  }
}

TEST(LossWatch, OptionsThatMeanNothingAreRefused) {
  EXPECT_THROW(LossWatch({.window = 0}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.window = 10, .warm_up = 11}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.warm_up = 0}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.deviations = kNan}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.deviations = -1}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.least_share = kNan}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.least_rise = -0.5}), InvalidArgumentError);
  EXPECT_THROW(LossWatch({.in_a_row = 0}), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
