#include "longhaul/train/journal/short_runs.h"

#include <gtest/gtest.h>

#include "longhaul/train/journal/run_history.h"
#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;

// Runs of a training, each from a step on, of which most are killed.
class ShortRunsTest : public ::testing::Test {
 protected:
  void note(Kind kind, std::optional<int64_t> step = std::nullopt, std::string text = "") {
    history.apply({.kind = kind, .time = now, .step = step, .text = std::move(text)});
  }
  void begin(std::optional<int64_t> step) {
    now += 100;
    note(Kind::kBegan);
    now += 7;  // while it is restored
    note(Kind::kRestored, step, "ckpt");
  }
  // It makes its first step after two seconds, and has no end.
  void run(std::optional<int64_t> step, double lasts, std::optional<int64_t> saves = std::nullopt) {
    begin(step);
    now += 2;
    note(Kind::kTraining, step.value_or(0) + 1);
    now += lasts - 2;
    if (saves) note(Kind::kSaved, saves, "ckpt");
    note(Kind::kMark, step.value_or(0) + 10);
  }
  void three_from(std::optional<int64_t> step) {
    for (const double lasts : {30, 20, 40}) run(step, lasts);
  }
  ShortRuns runs() const { return history.sums().short_runs; }

  RunHistory history;
  double now = 1000;
};

TEST_F(ShortRunsTest, ThreeFromTheSameStepAreAPattern) {
  run(100, 30);
  run(100, 20);
  begin(100);
  EXPECT_FALSE(runs().are_a_pattern());
  run(100, 40);
  begin(100);
  EXPECT_TRUE(runs().are_a_pattern());
  EXPECT_EQ(runs().count(), 3);
  EXPECT_EQ(runs().step(), 100);
  EXPECT_EQ(runs().shortest(), Seconds{20}) << "from the end of the restore to the last that is known";
  EXPECT_EQ(runs().longest(), Seconds{40});
  EXPECT_EQ(runs().middle(), Seconds{11}) << "between the first step of the shortest and its end";
}

TEST_F(ShortRunsTest, WhoSavesOnlyWhatItBeganWithHasNotSaved) {
  for (int i = 0; i < 3; ++i) run(100, 20, /*saves=*/100);
  begin(100);
  EXPECT_TRUE(runs().are_a_pattern());
}

TEST_F(ShortRunsTest, TheFirstSaveOfAnInitialisedRunIsWhatItBeganWith) {
  now += 100;
  note(Kind::kBegan);
  note(Kind::kInitialised);
  note(Kind::kSaved, 0, "ckpt-0");
  note(Kind::kTraining, 1);
  now += 20;
  note(Kind::kMark, 10);
  run(0, 20);
  run(0, 20);
  begin(0);
  EXPECT_TRUE(runs().are_a_pattern());
  EXPECT_EQ(runs().count(), 3);
}

TEST_F(ShortRunsTest, ASaveBeginsAnew) {
  run(100, 20);
  run(100, 20);
  run(100, 20, /*saves=*/110);
  run(110, 20);
  run(110, 20);
  begin(110);
  EXPECT_FALSE(runs().are_a_pattern());
}

TEST_F(ShortRunsTest, AnotherBeginningBeginsAnew) {
  run(100, 20);
  run(100, 20);
  run(90, 20);
  begin(90);
  EXPECT_FALSE(runs().are_a_pattern());
  EXPECT_EQ(runs().count(), 1);
}

TEST_F(ShortRunsTest, RunsThatBeginElsewhereNowAreNone) {
  three_from(100);
  begin(150);
  EXPECT_FALSE(runs().are_a_pattern()) << "the program has saved by itself";
}

TEST_F(ShortRunsTest, RunsThatMakeNoStepCountForNothing) {
  run(100, 20);
  run(100, 20);
  begin(100);
  now += 20;
  note(Kind::kMark, 100);
  run(100, 20);
  begin(100);
  EXPECT_TRUE(runs().are_a_pattern());
  EXPECT_EQ(runs().count(), 3);
}

TEST_F(ShortRunsTest, RunsThatAreTooShortForAnyIntervalCountForNothing) {
  for (int i = 0; i < 4; ++i) run(100, 4);
  begin(100);
  EXPECT_FALSE(runs().are_a_pattern());
}

TEST_F(ShortRunsTest, ATrainingThatHasEndedAndIsStartedAgainIsNone) {
  for (int i = 0; i < 5; ++i) {
    begin(100);
    now += 20;
    note(Kind::kEnded);
  }
  begin(100);
  EXPECT_FALSE(runs().are_a_pattern());
}

TEST_F(ShortRunsTest, ErrorsAreEndsToo) {
  for (int i = 0; i < 3; ++i) {
    run(100, 20);
    note(Kind::kFailed, std::nullopt, "the loss is not a number");
  }
  begin(100);
  EXPECT_TRUE(runs().are_a_pattern());
  EXPECT_EQ(runs().count(), 3);
}

TEST_F(ShortRunsTest, TheyStayAPatternWhileRunsThatSaveNowAreAsShort) {
  three_from(100);
  run(100, 35, /*saves=*/110);
  begin(110);
  EXPECT_TRUE(runs().are_a_pattern());
  EXPECT_EQ(runs().count(), 0);
  EXPECT_EQ(runs().shortest(), Seconds{20});
}

TEST_F(ShortRunsTest, ARunThatLastsLongEndsThePattern) {
  three_from(100);
  run(100, 80, /*saves=*/110);
  begin(110);
  EXPECT_FALSE(runs().are_a_pattern());
}

TEST_F(ShortRunsTest, WithoutStepsRunsFromACheckpointCountAlike) {
  three_from(std::nullopt);
  begin(std::nullopt);
  EXPECT_TRUE(runs().are_a_pattern());
}

TEST_F(ShortRunsTest, TheSumsOfAJournalHaveThem) {
  run(std::nullopt, 3.25);
  EXPECT_EQ(parse_run_journal(format_run_history(history)).history, history);
  three_from(100);
  run(100, 35, /*saves=*/110);
  const RunHistory before = parse_run_journal(format_run_history(history)).history;
  EXPECT_EQ(before, history);
}

TEST_F(ShortRunsTest, WhatIsNoSuchTextIsNone) {
  three_from(100);
  const std::string text = runs().to_text();
  EXPECT_EQ(ShortRuns::from_text(text), runs());
  EXPECT_EQ(ShortRuns().to_text(), "-");
  for (const std::string& bad : {std::string("-"), std::string("6e0c0d1b-8d0e-4f6e"), std::string("3"), text + ",1",
                                 text.substr(0, text.size() - 2), "x" + text, std::string("nan") + text.substr(1)}) {
    EXPECT_EQ(ShortRuns::from_text(bad), ShortRuns()) << bad;
  }
}

}  // namespace
}  // namespace longhaul
