#include "longhaul/train/journal/run_history.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;

// A training that is told what happens, second by second.
class RunHistoryTest : public ::testing::Test {
 protected:
  void at(double time, Kind kind, std::optional<int64_t> step = std::nullopt, std::string text = "") {
    if (kind == Kind::kBegan && text.empty()) text = "process 1 started 2 boot 3 host 4";
    history.apply({.kind = kind, .time = time, .step = step, .text = std::move(text)});
  }
  void saved_at(double time, int64_t step, Seconds stalled, Seconds cost = Seconds{0}, Seconds lasted = Seconds{0}) {
    history.apply({.kind = Kind::kSaved,
                   .time = time,
                   .step = step,
                   .stalled = stalled,
                   .lasted = lasted,
                   .cost = cost,
                   .text = "ckpt-" + std::to_string(step)});
  }
  // A run that is killed after it was restored, before its first step.
  void be_killed_after(const std::string& checkpoint) {
    time += 10;
    at(time, Kind::kBegan);
    at(time, Kind::kRestored, 100, checkpoint);
  }
  // One that dies of a fatal signal of its own.
  void die_after(const std::string& checkpoint) {
    be_killed_after(checkpoint);
    at(time, Kind::kDied, std::nullopt, "signal 11");
  }
  const TimeBreakdown& breakdown() const { return history.breakdown(); }

  RunHistory history;
  double time = 1000;
};

TEST_F(RunHistoryTest, AWrongClockInOneRunCountsNoPauseThatNobodyMade) {
  const double kYear = 365 * 24 * 3600.0;
  double end = 0;
  for (const double begin : {50 * kYear, 0.0, 90 * kYear, 50 * kYear + 1000}) {
    at(begin, Kind::kBegan);
    at(begin, Kind::kTraining, 1);
    end = begin + 100;
    at(end, Kind::kMark, 2);
    at(end, Kind::kEnded);
  }
  EXPECT_EQ(breakdown().stopped, Seconds{0});
  EXPECT_EQ(breakdown().total(), Seconds{400});
  at(end + 30 * 24 * 3600, Kind::kBegan);
  EXPECT_EQ(breakdown().stopped, Seconds{30.0 * 24 * 3600});
}

TEST_F(RunHistoryTest, EachMomentCountsOnce) {
  at(1000, Kind::kBegan);
  at(1002, Kind::kInitialised, 0);
  at(1003, Kind::kTraining, 1);
  saved_at(1103, 100, Seconds{4});
  at(1203, Kind::kStopRequested, 200);
  saved_at(1206, 200, Seconds{1}, Seconds{0}, Seconds{3});
  at(1207, Kind::kEnded);
  at(1307, Kind::kBegan);
  at(1309, Kind::kRestoring, std::nullopt, "ckpt");
  at(1315, Kind::kRestored, 200, "ckpt");
  at(1316, Kind::kTraining, 201);
  EXPECT_EQ(breakdown().initialising, Seconds{6});
  EXPECT_EQ(breakdown().training, Seconds{196});
  EXPECT_EQ(breakdown().saving, Seconds{7}) << "the last save holds up all";
  EXPECT_EQ(breakdown().stopped, Seconds{101});
  EXPECT_EQ(breakdown().restoring, Seconds{6});
  EXPECT_EQ(breakdown().redone, Seconds{0});
  EXPECT_EQ(breakdown().total(), Seconds{316});
  EXPECT_NEAR(breakdown().goodput(), 100.0 * 196 / 316, 1e-9);
}

TEST_F(RunHistoryTest, StepsAfterAStopAreTrainingAndASaveIsSavingOnlyAsLongAsItLasts) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  at(1010, Kind::kStopRequested, 10);
  at(1015, Kind::kMark, 15);
  saved_at(1020, 19, Seconds{1}, Seconds{0}, Seconds{4});  // while steps go on
  at(1025, Kind::kMark, 25);
  EXPECT_EQ(breakdown().training, Seconds{24});
  EXPECT_EQ(breakdown().saving, Seconds{1});
  at(1028, Kind::kMark, 25);
  saved_at(1038, 25, Seconds{1}, Seconds{0}, Seconds{2});
  at(1039, Kind::kEnded);
  EXPECT_EQ(breakdown().training, Seconds{24});
  EXPECT_EQ(breakdown().saving, Seconds{3});
  EXPECT_EQ(breakdown().stopped, Seconds{12}) << "nothing was done from the last step to the last save";
}

TEST_F(RunHistoryTest, StepsAfterAStopThatAnEarlierRunHadMadeAreRedone) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  at(1050, Kind::kMark, 50);
  at(1050, Kind::kBegan);
  at(1050, Kind::kRestored, 10, "ckpt");
  at(1050, Kind::kTraining, 10);
  at(1060, Kind::kStopRequested, 20);
  at(1070, Kind::kMark, 30);
  at(1075, Kind::kBegan);  // it was killed
  EXPECT_EQ(breakdown().redone, Seconds{20});
  EXPECT_EQ(breakdown().stopped, Seconds{5});
}

TEST_F(RunHistoryTest, StepsThatWereLostAreRedone) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  saved_at(1100, 100, Seconds{0});
  at(1150, Kind::kMark, 150);
  at(1160, Kind::kBegan);  // it was killed
  at(1160, Kind::kRestored, 100, "ckpt");
  at(1160, Kind::kTraining, 100);
  at(1200, Kind::kMark, 140);
  EXPECT_EQ(breakdown().redone, Seconds{40});
  at(1230, Kind::kMark, 170);
  EXPECT_EQ(breakdown().redone, Seconds{50}) << "of 30 steps 10 had been made";
  EXPECT_EQ(breakdown().training, Seconds{170});
  EXPECT_EQ(breakdown().stopped, Seconds{10});
  EXPECT_EQ(history.sums().interruptions, 1);
  EXPECT_EQ(history.sums().runs, 2);
}

TEST_F(RunHistoryTest, KnowsHowMuchTrainingAKillWouldLose) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  at(1100, Kind::kMark, 100);
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{100}, 0));
  saved_at(1100, 80, Seconds{0});
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{20}, 80)) << "steps were made while it was written";
  at(1150, Kind::kSaveFailed, 150, "1 No space left");
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{70}, 80));
  at(1160, Kind::kBegan);  // it was killed
  at(1160, Kind::kRestored, 80, "ckpt");
  at(1160, Kind::kTraining, 80);
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{70}, 80)) << "the steps up to 150 are not made again yet";
  at(1195, Kind::kMark, 115);
  saved_at(1195, 115, Seconds{0});
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{35}, 115));
  EXPECT_EQ(breakdown().redone, Seconds{35}) << "that a save has failed adds nothing to what is made again";
  at(1300, Kind::kMark, 220);
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{105}, 115));
  saved_at(1300, 220, Seconds{0});
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{0}, 220));
  at(1310, Kind::kMark, 230);
  at(1311, Kind::kBegan);
  at(1311, Kind::kInitialised, 0);
  EXPECT_EQ(history.unsaved(), UnsavedTime(breakdown().training, 0)) << "it begins anew, without a checkpoint";
}

TEST_F(RunHistoryTest, TimeWithoutStepsAfterASaveIsInNoNeedOfACheckpoint) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  saved_at(1100, 100, Seconds{0});
  at(1500, Kind::kMark, 100);  // a validation
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{0}, 100));
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{0}, 100));
  at(1510, Kind::kMark, 110);
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{10}, 100));
  saved_at(1510, 110, Seconds{0});
  at(2300, Kind::kStopRequested, 110);
  at(2301, Kind::kEnded);
  EXPECT_EQ(history.unsaved(), UnsavedTime(Seconds{0}, 110));
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{0}, 110));
}

TEST_F(RunHistoryTest, WhatIsLostAlreadyIsNotAtStake) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  saved_at(1080, 80, Seconds{0});
  at(1150, Kind::kMark, 150);
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{70}, 80));
  at(1160, Kind::kBegan);  // it was killed
  at(1160, Kind::kRestored, 80, "ckpt");
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{0}, 80));
  at(1160, Kind::kTraining, 80);
  at(1180, Kind::kMark, 100);
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{20}, 80)) << "what is made again would be lost again";
  saved_at(1180, 90, Seconds{0});
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{10}, 90)) << "steps were made while it was written";
  EXPECT_EQ(parse_run_journal(format_run_history(history)).history, history);
  at(1190, Kind::kDiverged, 110);
  at(1190, Kind::kRestored, 80, "ckpt");
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{0}, 80)) << "it went back";
  at(1195, Kind::kBegan);
  at(1196, Kind::kInitialised, 0);
  EXPECT_EQ(history.at_stake(), TimeAtStake(Seconds{0}, 0)) << "it begins anew";
}

TEST_F(RunHistoryTest, AFailedSaveAfterTheStepsWereLostCountsThemNot) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  at(1100, Kind::kMark, 100);
  at(1103, Kind::kInterrupted);
  const Uncounted lost{.time = Seconds{3}, .training = Seconds{3}, .after = 100};
  EXPECT_EQ(history.uncounted(), lost);
  at(1104, Kind::kSaveFailed, 101, "1 No space left");
  EXPECT_EQ(history.uncounted(), lost);
}

TEST_F(RunHistoryTest, LostTimeWhoseStepsNobodyCountedIsRedone) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised);
  at(1000, Kind::kTraining, 0);
  saved_at(1100, 100, Seconds{0}, Seconds{0}, Seconds{0.5});
  at(1103, Kind::kInterrupted);
  const Uncounted lost{.time = Seconds{3.5}, .training = Seconds{3.5}, .after = 100};
  EXPECT_EQ(history.uncounted(), lost) << "from the moment of the checkpoint on, which took half a second";
  at(1110, Kind::kDisturbed, std::nullopt, "the session was lost");
  at(1120, Kind::kBegan);
  at(1120, Kind::kRestoring, std::nullopt, "ckpt-100");
  EXPECT_EQ(history.uncounted(), lost);
  EXPECT_EQ(breakdown().training, Seconds{103});
  at(1121, Kind::kRestored, 100, "ckpt-100");
  EXPECT_EQ(history.uncounted(), Uncounted{});
  EXPECT_EQ(breakdown().training, Seconds{99.5});
  EXPECT_EQ(breakdown().redone, Seconds{3.5});
  EXPECT_EQ(breakdown().stopped, Seconds{17});
  EXPECT_EQ(breakdown().total(), Seconds{121});
}

TEST_F(RunHistoryTest, AStepThatIsKnownLeavesNothingUncounted) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kRestored, 100, "ckpt-100");
  at(1000, Kind::kTraining, 101);
  at(1003, Kind::kInterrupted, 140);
  EXPECT_EQ(history.uncounted(), Uncounted{});
  at(1010, Kind::kRestored, 100, "ckpt-100");
  at(1010, Kind::kTraining, 100);
  at(1020, Kind::kMark, 140);
  EXPECT_EQ(breakdown().redone, Seconds{10});
  EXPECT_EQ(breakdown().stopped, Seconds{7}) << "until another session";
}

TEST_F(RunHistoryTest, AKilledRunHadTrainedNoLongerThanToTheNextMark) {
  for (const double pause : {2.0, 3600.0}) {
    history = {};
    at(1000, Kind::kBegan);
    at(1000, Kind::kInitialised);
    at(1000, Kind::kTraining, 1);
    at(1050, Kind::kMark, 50);
    at(1050 + pause, Kind::kBegan);
    const Uncounted lost{.time = Seconds{std::min(pause, 5.0)}, .after = 50};
    EXPECT_EQ(history.uncounted(), lost);
    at(1060 + pause, Kind::kBegan);
    EXPECT_EQ(history.uncounted(), lost) << "the next one was killed before it was restored";
    at(1061 + pause, Kind::kRestored, 7, "ckpt-7");
    EXPECT_EQ(breakdown().redone, Seconds{0}) << "it is in the pause";
  }
}

TEST_F(RunHistoryTest, OfALiveModelNothingIsRedone) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised);
  at(1000, Kind::kTraining, 1);
  at(1004, Kind::kInterrupted);
  at(1010, Kind::kFound);
  EXPECT_EQ(breakdown().redone, Seconds{0});
  EXPECT_EQ(breakdown().training, Seconds{4});
  EXPECT_EQ(history.uncounted().time, Seconds{4}) << "it is still not known how far it had come";
  at(1011, Kind::kTraining, 300);
  EXPECT_EQ(history.uncounted(), Uncounted{});
}

TEST_F(RunHistoryTest, NothingIsUncountedWhereStepsAreNotCountedOrAllHasEndedWell) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kRestored, 100, "ckpt-100");
  at(1000, Kind::kTraining);
  at(1100, Kind::kFailed);
  EXPECT_EQ(history.uncounted(), Uncounted{});
  at(1200, Kind::kBegan);
  at(1200, Kind::kRestored, 100, "ckpt-100");
  at(1200, Kind::kTraining, 101);
  at(1203, Kind::kEnded);
  EXPECT_EQ(history.uncounted(), Uncounted{});
}

TEST_F(RunHistoryTest, ARunThatBeginsAnewRedoesAll) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised);
  at(1000, Kind::kTraining, 0);
  at(1050, Kind::kMark, 50);
  at(1050, Kind::kBegan);
  at(1050, Kind::kInitialised);
  at(1050, Kind::kTraining, 0);
  at(1090, Kind::kMark, 40);
  EXPECT_EQ(breakdown().redone, Seconds{40});
  EXPECT_EQ(breakdown().training, Seconds{50});
}

TEST_F(RunHistoryTest, ACheckpointOfAnEarlierStepDoesNotSetTheTrainingBack) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  at(1100, Kind::kMark, 100);
  saved_at(1101, 90, Seconds{0});
  at(1110, Kind::kMark, 110);
  EXPECT_EQ(breakdown().redone, Seconds{0});
  EXPECT_EQ(breakdown().training, Seconds{110});
}

TEST_F(RunHistoryTest, TimeThatGoesBackIsNoTime) {
  at(1000, Kind::kBegan);
  at(900, Kind::kBegan);
  at(905, Kind::kInitialised);
  EXPECT_EQ(breakdown().total(), Seconds{5});
}

TEST_F(RunHistoryTest, ASessionThatIsLostIsAnInterruption) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kInitialised, 0);
  at(1000, Kind::kTraining, 0);
  at(1010, Kind::kRestoring, std::nullopt, "ckpt");
  at(1012, Kind::kRestored, 5, "ckpt");
  EXPECT_EQ(history.sums().interruptions, 1);
  EXPECT_EQ(breakdown().stopped, Seconds{10}) << "how much of it was training is not known";
  EXPECT_EQ(breakdown().restoring, Seconds{2});
}

TEST_F(RunHistoryTest, KillsFromOutsideAreNeverHeldAgainstTheCheckpoint) {
  for (int i = 0; i < 70; ++i) be_killed_after("ckpt-100");
  for (int i = 0; i < 5; ++i) {
    be_killed_after("ckpt-100");
    at(time + 1, Kind::kTraining, 101);
    at(time + 2, Kind::kMark, 500);
  }
  at(time + 10, Kind::kBegan);
  at(time + 11, Kind::kRestoring, std::nullopt, "ckpt-100");
  at(time + 20, Kind::kBegan);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 0);
  EXPECT_EQ(history.sums().interruptions, 76);
}

TEST_F(RunHistoryTest, SignalsOfTheProcessItselfAreHeldAgainstTheCheckpoint) {
  die_after("ckpt-100");
  EXPECT_EQ(history.deaths_after("ckpt-100"), 1);
  die_after("ckpt-100");
  EXPECT_EQ(history.deaths_after("ckpt-100"), 2);
  EXPECT_EQ(history.deaths_after("ckpt-50"), 0);
  EXPECT_EQ(history.sums().interruptions, 2);
}

TEST_F(RunHistoryTest, AKillBetweenTwoDeathsChangesNothing) {
  die_after("ckpt-100");
  be_killed_after("ckpt-100");
  die_after("ckpt-100");
  EXPECT_EQ(history.deaths_after("ckpt-100"), 2);
}

TEST_F(RunHistoryTest, ADeathWhileItIsRestoredCounts) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kRestoring, std::nullopt, "ckpt-100");
  at(1010, Kind::kDied);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 1);
}

TEST_F(RunHistoryTest, ADeathAfterTheEndOrBeforeAnythingWasRestoredIsNobodys) {
  be_killed_after("ckpt-100");
  at(time + 1, Kind::kEnded);
  at(time + 2, Kind::kDied);
  at(time + 3, Kind::kBegan);
  at(time + 4, Kind::kDied);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 0);
  EXPECT_EQ(history.sums().interruptions, 1);
}

TEST_F(RunHistoryTest, AnErrorWhileItIsRestoredIsNotTheCheckpoints) {
  at(1000, Kind::kBegan);
  at(1000, Kind::kRestoring, std::nullopt, "ckpt-100");
  at(1010, Kind::kFailed);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 0);
  EXPECT_EQ(history.sums().interruptions, 1);
}

TEST_F(RunHistoryTest, AnErrorOfTheProgramIsADeathAndOneOfTheSurroundingsIsNone) {
  be_killed_after("ckpt-100");
  at(1100, Kind::kFailed);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 1);
  be_killed_after("ckpt-100");
  at(1200, Kind::kDisturbed);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 1);
  EXPECT_EQ(history.sums().interruptions, 2);
}

TEST_F(RunHistoryTest, ARunThatWasAskedToStopDoesNotCount) {
  be_killed_after("ckpt-100");
  at(1100, Kind::kStopRequested, 120, "SIGTERM");
  at(1200, Kind::kDied);
  EXPECT_EQ(history.deaths_after("ckpt-100"), 0);
}

TEST_F(RunHistoryTest, ASaveOfAnotherStepOrAGoodEndClearsTheCheckpoint) {
  for (const Kind kind : {Kind::kSaved, Kind::kEnded}) {
    die_after("ckpt-100");
    be_killed_after("ckpt-100");
    EXPECT_EQ(history.deaths_after("ckpt-100"), 1);
    at(time + 1, kind, 200);
    EXPECT_EQ(history.deaths_after("ckpt-100"), 0);
    at(time + 2, Kind::kEnded);
  }
}

TEST_F(RunHistoryTest, ASaveOfTheRestoredStepClearsNothing) {
  die_after("ckpt-100");
  be_killed_after("ckpt-100");
  saved_at(time + 1, 100, Seconds{0});
  EXPECT_EQ(history.deaths_after("ckpt-100"), 1);
}

TEST_F(RunHistoryTest, ACheckpointThatIsWrittenAnewHasNoDeaths) {
  die_after("ckpt-200");
  die_after("ckpt-200");
  EXPECT_EQ(history.deaths_after("ckpt-200"), 2);
  at(time + 2, Kind::kBegan);
  at(time + 3, Kind::kRestored, 100, "ckpt-100");
  at(time + 4, Kind::kTraining, 101);
  saved_at(time + 5, 200, Seconds{0});
  EXPECT_EQ(history.deaths_after("ckpt-200"), 0);
}

TEST_F(RunHistoryTest, FewCheckpointsAreRemembered) {
  for (int i = 0; i < 40; ++i) die_after("ckpt-" + std::to_string(i));
  EXPECT_EQ(history.sums().crashes.size(), 16);
  EXPECT_EQ(history.deaths_after("ckpt-0"), 0);
  EXPECT_EQ(history.deaths_after("ckpt-38"), 1);
}

TEST_F(RunHistoryTest, TheCostOfSavesIsThatOfTheLastOnes) {
  EXPECT_EQ(history.sums().save_cost, std::nullopt);
  saved_at(1000, 1, Seconds{0}, Seconds{4});
  EXPECT_EQ(history.sums().save_cost, Seconds{4});
  saved_at(1001, 2, Seconds{0}, Seconds{2});
  EXPECT_EQ(history.sums().save_cost, Seconds{3});
}

TEST_F(RunHistoryTest, ARollbackIsAnInterruptionAlsoIfNobodySawTheRunTrain) {
  const std::string back = Rollbacks::text_of({.count = 1, .diverged_step = 5, .until_step = 6}, /*ends=*/false);
  at(1000, Kind::kBegan);
  at(1001, Kind::kInitialised, 0);
  for (int rollback = 1; rollback <= 2; ++rollback) {
    at(1001 + rollback, Kind::kDiverged, 6, back);
    at(1001 + rollback, Kind::kRestored, 0, "ckpt-0");
    EXPECT_EQ(history.sums().interruptions, rollback);
  }
  at(1010, Kind::kEnded);
  EXPECT_EQ(history.sums().interruptions, 2);
}

TEST_F(RunHistoryTest, OftenInterruptedTrainingsAreSavedMoreOften) {
  EXPECT_EQ(best_save_interval(history), Seconds{30}) << "what it costs is not known yet";
  EXPECT_NEAR(best_save_interval(history, Seconds{0.5}).count(), 294, 1) << "as if interrupted once a day";
  saved_at(1000, 1, Seconds{0}, Seconds{2});
  EXPECT_NEAR(best_save_interval(history).count(), 588, 1);
  for (int i = 0; i < 24; ++i) die_after("ckpt");
  EXPECT_LT(best_save_interval(history, Seconds{0.5}), Seconds{62});
}

TEST(TimeBreakdown, IsDescribedInOneLine) {
  const TimeBreakdown breakdown{.training = Seconds{10800},
                                .redone = Seconds{120},
                                .saving = Seconds{60},
                                .restoring = Seconds{30},
                                .initialising = Seconds{30},
                                .stopped = Seconds{480}};
  EXPECT_EQ(
      describe(breakdown, 4),
      "3 h 12 min in 4 runs: 93.8 % goodput, 1.0 % redone, 0.5 % saving, 0.3 % restoring, 0.3 % initialising, 4.2 "
      "% stopped");
}

TEST(TimeBreakdown, NoTimeIsNoLoss) {
  EXPECT_EQ(TimeBreakdown{}.goodput(), 100);
  EXPECT_EQ(describe(TimeBreakdown{.training = Seconds{9.5}}, 1),
            "9.5 s in 1 run: 100.0 % goodput, 0.0 % redone, 0.0 % saving, 0.0 % restoring, 0.0 % initialising, 0.0 % "
            "stopped");
}

TEST(TimeBreakdown, WhatNoCheckpointHasIsNoGoodput) {
  const TimeBreakdown breakdown{.training = Seconds{90}, .stopped = Seconds{10}};
  EXPECT_EQ(describe(breakdown, 1, Seconds{30}),
            "1 min 40 s in 1 run: 60.0 % goodput, 30.0 % in no checkpoint, 0.0 % redone, 0.0 % saving, 0.0 % "
            "restoring, 0.0 % initialising, 10.0 % stopped");
}

TEST(TimeBreakdown, OfSecondsThereIsNoAccount) {
  EXPECT_EQ(describe({.initialising = Seconds{2.9}}, 2), "2.9 s in 2 runs, too short to measure goodput");
}

}  // namespace
}  // namespace longhaul
