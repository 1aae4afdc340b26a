#include "benchmarks/bench.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace longhaul::bench {
namespace {

// A row whose samples are `pairs`, after one that only warms up.
Row row_of(std::vector<Pair> pairs, double goal, Bound bound = Bound::kAtLeast) {
  Row row{.name = "area/row", .what = "this beside that", .unit = "s", .goal = goal, .bound = bound};
  row.samples = static_cast<int>(pairs.size());
  row.sample = [pairs = std::move(pairs), next = -1]() mutable {
    ++next;
    return next == 0 ? Pair{1e9, 1} : pairs[static_cast<size_t>(next - 1)];
  };
  return row;
}

TEST(Bench, TheMedianIsTheMiddleValueOrTheMeanOfTheTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(Bench, TheIntervalIsStudents) {
  EXPECT_EQ(half_interval({5}), 0);
  EXPECT_EQ(half_interval({5, 5, 5}), 0);
  EXPECT_NEAR(half_interval({1, 2, 3, 4, 5}), 1.963, 0.01);  // 2.776 * sqrt(2.5 / 5)
}

TEST(Bench, TheFirstSampleOnlyWarmsUp) {
  const Result result = measure(row_of({{2, 1}, {4, 1}, {3, 1}}, 1));
  EXPECT_EQ(result.ours, 3);
  EXPECT_EQ(result.beside, 1);
  EXPECT_EQ(result.ratio, 3);
}

TEST(Bench, InTurnsEachSideGoesFirstEverySecondTime) {
  std::string order;
  const auto goes = [&order](char side, double figure) {
    return [&order, side, figure] {
      order += side;
      return figure;
    };
  };
  const std::function<Pair()> sample = in_turns(goes('o', 3), goes('b', 2));
  for (int i = 0; i < 3; ++i) {
    const Pair pair = sample();
    EXPECT_EQ(pair.ours, 3);
    EXPECT_EQ(pair.beside, 2);
  }
  EXPECT_EQ(order, "obboob");
}

TEST(Bench, AGoalHoldsFromItsValueOn) {
  EXPECT_TRUE(measure(row_of({{3, 2}}, 1.5)).holds);
  EXPECT_FALSE(measure(row_of({{3, 2}}, 1.6)).holds);
  EXPECT_TRUE(measure(row_of({{3, 2}}, 1.5, Bound::kAtMost)).holds);
  EXPECT_FALSE(measure(row_of({{3, 2}}, 1.4, Bound::kAtMost)).holds);
  EXPECT_TRUE(measure(row_of({{3, 2}}, 1, Bound::kAtMostMore)).holds);
  EXPECT_FALSE(measure(row_of({{3, 2}}, 0.9, Bound::kAtMostMore)).holds);
}

TEST(Bench, OurOwnFigureMayHaveAGoalToo) {
  Row row = row_of({{3, 2}, {3, 2}}, 1);
  row.goal_ours = 4;
  const Result result = measure(row);
  EXPECT_FALSE(result.holds);
  EXPECT_EQ(result.goal, ">= 1.00, >= 4 s");
}

TEST(Bench, NoiseIsForgivenOnlyWhereTheRowSaysSo) {
  const std::vector<Pair> noisy = {{0.90, 1}, {1.06, 1}, {0.98, 1}, {0.94, 1}, {1.02, 1}};
  Row row = row_of(noisy, 0.99);
  EXPECT_FALSE(measure(row).holds);
  row = row_of(noisy, 0.99);
  row.forgive_noise = true;
  EXPECT_TRUE(measure(row).holds);
  row = row_of(noisy, 1.2);
  row.forgive_noise = true;
  EXPECT_FALSE(measure(row).holds);
}

TEST(Bench, ALineOfJsonHasTheKeysInTheirOrder) {
  EXPECT_EQ(json_line(measure(row_of({{3, 2}}, 1.5))),
            R"({"name":"area/row","ours":3.0,"unit":"s","beside":2.0,"ratio":1.5,"goal":">= 1.50","holds":true})");
}

TEST(Bench, TheTableIsAligned) {
  const std::string head = table_head();
  const std::string line = table_line(measure(row_of({{3, 2}}, 1.5)));
  EXPECT_EQ(head.find("goal"), line.find(">="));
  EXPECT_EQ(head.find("holds"), line.find("yes"));
}

}  // namespace
}  // namespace longhaul::bench
