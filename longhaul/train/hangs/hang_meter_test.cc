#include "longhaul/train/hangs/hang_meter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "longhaul/base/error.h"

namespace longhaul {
namespace {

using Finding = HangMeter::Finding;

// A training that makes steps, or none, while time passes.
class HangMeterTest : public ::testing::Test {
 protected:
  HangMeter& begin(const HangOptions& options = {}) {
    meter_.emplace(options);
    meter_->begin(now_, steps_);
    return *meter_;
  }
  // The first finding other than kNothing within this time.
  Finding pass(Seconds time) {
    const Seconds end = now_ + time;
    while (now_ < end) {
      const Finding found = look(std::min(meter_->between_looks(), end - now_));
      if (found != Finding::kNothing) return found;
    }
    return Finding::kNothing;
  }
  Finding look(Seconds later, bool none_expected = false) {
    now_ += later;
    return meter_->look(now_, steps_, {.now = none_expected, .ended = ended_});
  }
  Finding make_steps(int count, Seconds each) {
    Finding found = Finding::kNothing;
    for (int i = 0; i < count; ++i) {
      found = std::max(found, pass(each));
      ++steps_;
    }
    return std::max(found, look(Seconds{0}));
  }

  Seconds now_{1000};
  uint64_t steps_ = 7;
  uint64_t ended_ = NoStepsExpected::state().ended;
  std::optional<HangMeter> meter_;
};

TEST_F(HangMeterTest, NoStepForTenMinutesIsAHang) {
  begin();
  EXPECT_EQ(make_steps(1000, Seconds{0.5}), Finding::kNothing);
  EXPECT_EQ(pass(Seconds{590}), Finding::kNothing);
  EXPECT_EQ(pass(Seconds{30}), Finding::kHang);
  EXPECT_NEAR(meter_->without_step().count(), 600, 30);
}

TEST_F(HangMeterTest, ATrainingWithoutAFirstStepHangs) {
  begin();
  EXPECT_EQ(pass(Seconds{620}), Finding::kHang);
  EXPECT_EQ(meter_->median_step(), Seconds{0});
}

TEST_F(HangMeterTest, SlowStepsHaveTwentyOfTheirMedian) {
  begin();
  EXPECT_EQ(make_steps(10, Seconds{200}), Finding::kNothing);
  EXPECT_NEAR(meter_->median_step().count(), 200, 15);
  EXPECT_EQ(pass(Seconds{3600}), Finding::kNothing);
  EXPECT_EQ(pass(Seconds{600}), Finding::kHang);
}

TEST_F(HangMeterTest, OneSlowStepAmongManyDoesNotMoveTheLimit) {
  begin();
  make_steps(40, Seconds{10});
  make_steps(1, Seconds{590});
  EXPECT_EQ(meter_->limit(), Seconds{600});
}

TEST_F(HangMeterTest, ManyStepsBetweenTwoLooksAreCounted) {
  begin();
  for (int i = 0; i < 5; ++i) {
    steps_ += 1500;
    look(Seconds{15});
  }
  EXPECT_DOUBLE_EQ(meter_->median_step().count(), 0.01);
}

TEST_F(HangMeterTest, AHangIsSaidOnceThenAtGrowingIntervals) {
  begin();
  EXPECT_EQ(pass(Seconds{1e6}), Finding::kHang);
  const Seconds first = now_;
  EXPECT_EQ(pass(Seconds{1e6}), Finding::kStillHangs);
  EXPECT_NEAR((now_ - first).count(), 600, 30);
  const Seconds second = now_;
  EXPECT_EQ(pass(Seconds{1e6}), Finding::kStillHangs);
  EXPECT_NEAR((now_ - second).count(), 1200, 60);
}

TEST_F(HangMeterTest, AStepEndsIt) {
  begin();
  pass(Seconds{1e6});
  pass(Seconds{120});
  ++steps_;
  EXPECT_EQ(look(Seconds{1}), Finding::kOver);
  EXPECT_NEAR(meter_->lasted().count(), 720, 30);
  EXPECT_EQ(pass(Seconds{590}), Finding::kNothing) << "the next one begins anew";
  EXPECT_EQ(pass(Seconds{30}), Finding::kHang);
}

TEST_F(HangMeterTest, WhereNoStepsAreExpectedNoneIsMissed) {
  begin();
  make_steps(10, Seconds{1});
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(look(Seconds{15}, /*none_expected=*/true), Finding::kNothing);
  EXPECT_EQ(pass(Seconds{590}), Finding::kNothing) << "the time begins after it";
  EXPECT_EQ(pass(Seconds{30}), Finding::kHang);
}

TEST_F(HangMeterTest, AnEvaluationBetweenTwoLooksIsNoticed) {
  begin();
  pass(Seconds{590});
  ++ended_;
  EXPECT_EQ(pass(Seconds{590}), Finding::kNothing);
  EXPECT_EQ(pass(Seconds{30}), Finding::kHang);
}

TEST_F(HangMeterTest, AnEvaluationIsNoStep) {
  begin();
  make_steps(3, Seconds{10});
  const Seconds median = meter_->median_step();
  for (int i = 0; i < 100; ++i) look(Seconds{15}, /*none_expected=*/true);
  make_steps(1, Seconds{500});
  EXPECT_EQ(meter_->median_step(), median);
}

TEST_F(HangMeterTest, TimeInWhichNobodyWasAwakeDoesNotCount) {
  begin();
  make_steps(10, Seconds{1});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(look(Seconds{86400}), Finding::kNothing) << "the machine slept, or the process was stopped";
  }
  EXPECT_EQ(pass(Seconds{620}), Finding::kHang);
}

TEST_F(HangMeterTest, AClockThatGoesBackwardsCountsForNothing) {
  begin();
  pass(Seconds{300});
  look(Seconds{-1e6});
  EXPECT_NEAR(meter_->without_step().count(), 300, 1);
}

TEST_F(HangMeterTest, TheEndComesAfterTheReport) {
  begin({.after = Seconds{600}, .kill_after = Seconds{60}});
  EXPECT_EQ(pass(Seconds{1e6}), Finding::kHang);
  EXPECT_EQ(pass(Seconds{1e6}), Finding::kTooLong);
  EXPECT_NEAR(meter_->without_step().count(), 600, 30);
}

TEST_F(HangMeterTest, TheEndComesAtItsTime) {
  begin({.after = Seconds{10}, .kill_after = Seconds{1800}});
  Finding found = Finding::kNothing;
  while (found != Finding::kTooLong) found = pass(Seconds{1e6});
  EXPECT_NEAR(meter_->without_step().count(), 1800, 1);
}

TEST_F(HangMeterTest, ByDefaultNothingEnds) {
  begin();
  Finding worst = Finding::kNothing;
  for (int i = 0; i < 100'000; ++i) worst = std::max(worst, look(Seconds{15}));
  EXPECT_EQ(worst, Finding::kStillHangs);
}

TEST(HangOptionsTest, RefusesWhatIsNoTime) {
  EXPECT_NO_THROW(check_hang({.after = Seconds{0}}, "hang"));
  EXPECT_THROW(check_hang({.after = Seconds{-1}}, "hang"), InvalidArgumentError);
  EXPECT_THROW(check_hang({.after = Seconds{std::numeric_limits<double>::quiet_NaN()}}, "hang"), InvalidArgumentError);
  EXPECT_THROW(check_hang({.kill_after = Seconds{-1}}, "hang"), InvalidArgumentError);
  EXPECT_THROW(check_hang({.median_steps = -1}, "hang"), InvalidArgumentError);
}

}  // namespace
}  // namespace longhaul
