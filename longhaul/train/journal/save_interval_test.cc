#include "longhaul/train/journal/save_interval.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>

#include "longhaul/base/defaulted.h"

namespace longhaul {
namespace {

constexpr Seconds kHour{3600}, kDay{24 * 3600};

struct Options {
  SaveInterval save_model_secs{Seconds{600}};
  Defaulted<SaveInterval> save_checkpoint_secs;
};

TEST(SaveInterval, IsGivenAsSecondsAsAnyDurationOrAsAuto) {
  const Options seconds{.save_model_secs = Seconds{30}, .save_checkpoint_secs = Seconds{40}};
  EXPECT_EQ(seconds.save_model_secs.seconds(), Seconds{30});
  EXPECT_EQ(seconds.save_checkpoint_secs.value().seconds(), Seconds{40});
  Options automatic{.save_model_secs = kAuto, .save_checkpoint_secs = kAuto};
  EXPECT_TRUE(automatic.save_model_secs.is_auto());
  EXPECT_TRUE(automatic.save_checkpoint_secs.value().is_auto());
  EXPECT_FALSE(automatic.save_model_secs.is_off());
  automatic.save_model_secs = std::chrono::minutes{10};
  EXPECT_EQ(automatic.save_model_secs, SaveInterval(Seconds{600}));
  automatic.save_model_secs = Seconds{0};
  EXPECT_TRUE(automatic.save_model_secs.is_off());
}

TEST(SaveInterval, IsTheRootOfTwiceTheCostTimesTheTimeBetweenFailures) {
  EXPECT_NEAR(choose_save_interval(Seconds{0.5}, kDay).count(), std::sqrt(86400.0), 1e-9);
  EXPECT_NEAR(choose_save_interval(Seconds{2}, 10 * kHour).count(), std::sqrt(4 * 36000.0), 1e-9);
}

TEST(SaveInterval, LosesLessThanItsNeighboursDo) {
  const Seconds cost{0.8}, between_failures = 30 * kHour;
  const auto lost = [&](Seconds interval) { return cost / interval + interval / (2 * between_failures); };
  const Seconds chosen = choose_save_interval(cost, between_failures);
  EXPECT_LT(lost(chosen), lost(chosen * 1.1));
  EXPECT_LT(lost(chosen), lost(chosen * 0.9));
}

TEST(SaveInterval, StaysWithinItsBounds) {
  EXPECT_EQ(choose_save_interval(Seconds{0}, kDay), Seconds{30});
  EXPECT_EQ(choose_save_interval(Seconds{0.001}, kHour), Seconds{30});
  EXPECT_EQ(choose_save_interval(Seconds{30}, 365 * kDay), kHour);
}

TEST(SaveInterval, NeverCostsMoreThanAHundredth) {
  EXPECT_EQ(choose_save_interval(Seconds{10}, kHour), Seconds{1000});
  EXPECT_EQ(choose_save_interval(Seconds{60}, kDay), Seconds{6000}) << "even beyond the longest";
}

TEST(SaveInterval, AYoungTrainingCountsAsInterruptedOnceADay) {
  EXPECT_EQ(mean_time_between_failures(Seconds{0}, 0), kDay);
  EXPECT_EQ(mean_time_between_failures(kDay, 0), 2 * kDay);
  EXPECT_EQ(mean_time_between_failures(9 * kDay, 9), kDay);
  EXPECT_LT(mean_time_between_failures(kHour, 10), 3 * kHour);
}

TEST(SaveCostMeter, CountsTheStallAloneBeforeItKnowsTheRateOfSteps) {
  SaveCostMeter meter;
  EXPECT_EQ(meter.cost(), std::nullopt);
  meter.begins(Seconds{0}, 0);
  meter.ends(Seconds{10}, 0, Seconds{0.25});
  EXPECT_EQ(meter.cost(), Seconds{0.25});
}

TEST(SaveCostMeter, CountsTheStepsThatWereNotMade) {
  SaveCostMeter meter;
  meter.begins(Seconds{0}, 0);
  meter.ends(Seconds{0}, 0, Seconds{0});
  meter.begins(Seconds{100}, 1000);
  meter.ends(Seconds{104}, 1030, Seconds{0.1});
  EXPECT_DOUBLE_EQ(meter.last().count(), 1) << "30 steps take 3 s, and 4 s have passed";
}

TEST(SaveCostMeter, TrainingThatWasFasterMeanwhileCostsTheStall) {
  SaveCostMeter meter;
  meter.begins(Seconds{0}, 0);
  meter.ends(Seconds{0}, 0, Seconds{0});
  meter.begins(Seconds{100}, 100);
  meter.ends(Seconds{101}, 110, Seconds{0.125});
  EXPECT_EQ(meter.last(), Seconds{0.125});
}

TEST(SaveCostMeter, OneSlowSaveDoesNotCount) {
  SaveCostMeter meter(Seconds{7});
  EXPECT_EQ(meter.cost(), Seconds{7}) << "of earlier runs";
  for (const double stall : {1.0, 1.0, 50.0, 1.0, 2.0}) {
    meter.begins(Seconds{0}, std::nullopt);
    meter.ends(Seconds{0}, std::nullopt, Seconds{stall});
  }
  EXPECT_EQ(meter.cost(), Seconds{1});
}

TEST(SaveCostMeter, OneOrTwoThatMetASlowDiskAreNotBelieved) {
  const auto save = [](SaveCostMeter& meter, double stall) {
    meter.begins(Seconds{0}, std::nullopt);
    meter.ends(Seconds{0}, std::nullopt, Seconds{stall});
  };
  EXPECT_EQ(SaveCostMeter(Seconds{300}).cost(), kMostCostOfFewSaves);
  SaveCostMeter meter;
  save(meter, 600);
  EXPECT_EQ(choose_save_interval(meter.cost().value(), kDay), kLongestAutoInterval);
  save(meter, 0.5);
  EXPECT_EQ(meter.cost(), Seconds{0.5});
  save(meter, 60);
  EXPECT_EQ(meter.cost(), Seconds{60}) << "the median of three is believed";
}

}  // namespace
}  // namespace longhaul
