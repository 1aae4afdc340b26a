#include "longhaul/train/tenure/checkpoint_cadence.h"

#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;

class CheckpointCadenceTest : public ::testing::Test {
 protected:
  // Three runs of 40 s that ended before they had saved: the next one has its first interval after 20 s.
  std::shared_ptr<RunJournal> journal_of_short_runs() {
    auto journal = std::make_shared<RunJournal>(directory.path(), RunJournalOptions{.clock = &clock});
    for (int i = 0; i < 4; ++i) {
      journal->begin();
      journal->restored("model.ckpt-7", 7);
      if (i == 3) break;
      journal->training(8);
      clock.advance(Seconds{40});
      journal->ended();
    }
    return journal;
  }
  static CadenceOptions every(Seconds interval, std::shared_ptr<RunJournal> journal = nullptr) {
    return {.option = {"save_model_secs is 100", interval}, .interval = interval, .journal = std::move(journal)};
  }
  void advance(double seconds) { clock.advance(Seconds{seconds}); }
  Seconds now() { return clock.now(); }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
};

TEST_F(CheckpointCadenceTest, ComesAtTheInterval) {
  CheckpointCadence cadence(every(Seconds{100}));
  cadence.session_begins(now());
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.interval(), Seconds{100});
  EXPECT_EQ(cadence.early_interval(), std::nullopt);
  EXPECT_FALSE(cadence.is_early_due(now()));
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{100});
}

TEST_F(CheckpointCadenceTest, WhatIsDueMeanwhileIsLeftOutButForTheLast) {
  CheckpointCadence cadence(every(Seconds{100}));
  cadence.session_begins(now());
  advance(99);
  const LogRecorder log;
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{100}) << "it is caught up with";
  advance(1 + 150);
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{100}) << "the one after it is late";
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
  advance(350);  // 400 after it was due
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{400});
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("skipped checkpoints that were due meanwhile: 3. The last one took 400 s"));
}

TEST_F(CheckpointCadenceTest, AfterShortRunsIntervalsGrowFromTheirs) {
  const LogRecorder log;
  CheckpointCadence cadence(every(Seconds{100}, journal_of_short_runs()));
  cadence.session_begins(now());
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("The first checkpoint of this run is due after 20 s"));
  EXPECT_EQ(cadence.interval(), Seconds{100});
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{20});
  advance(19);
  EXPECT_FALSE(cadence.is_early_due(now()));
  advance(1);
  EXPECT_TRUE(cadence.is_early_due(now()));
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{40});
  EXPECT_FALSE(cadence.is_early_due(now()));
  advance(40);
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{80});
  advance(80);
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.early_interval(), std::nullopt);
  EXPECT_EQ(cadence.wait_for_next(now()), Seconds{100});
}

TEST_F(CheckpointCadenceTest, AShortIntervalWhoseSaveFailsIsTheNextOneToo) {
  CheckpointCadence cadence(every(Seconds{100}, journal_of_short_runs()));
  cadence.session_begins(now());
  cadence.attempted(now(), true);
  advance(20);
  cadence.attempted(now(), false);
  EXPECT_EQ(cadence.early_interval(), Seconds{20});
  EXPECT_FALSE(cadence.is_early_due(now()));
}

TEST_F(CheckpointCadenceTest, AnotherSessionOfTheRunBeginsWhereTheIntervalHasCome) {
  const LogRecorder log;
  CheckpointCadence cadence(every(Seconds{100}, journal_of_short_runs()));
  cadence.session_begins(now());
  cadence.attempted(now(), true);
  advance(20);
  cadence.attempted(now(), true);
  advance(10);
  cadence.session_begins(now());
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.early_interval(), Seconds{40});
  advance(39);
  EXPECT_FALSE(cadence.is_early_due(now()));
  const std::string text = log.text(LogLevel::kWarning);
  EXPECT_EQ(text.find("this run is due"), text.rfind("this run is due")) << "it is said once";
}

TEST_F(CheckpointCadenceTest, ShortRunsCountWhereItGoesBySteps) {
  CheckpointCadence cadence(
      {.option = {"save_checkpoint_steps is 1000", std::nullopt}, .journal = journal_of_short_runs()});
  cadence.session_begins(now());
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.interval(), std::nullopt);
  advance(20);
  EXPECT_TRUE(cadence.is_early_due(now()));
}

TEST_F(CheckpointCadenceTest, WhatHasFailedIsTriedAgainWhenSaveAttemptsSaysSo) {
  SaveAttempts attempts({.first_wait = Seconds{4}, .clock = &clock});
  CheckpointCadence cadence(every(Seconds{100}));
  cadence.session_begins(now());
  cadence.attempted(now(), true);
  EXPECT_FALSE(cadence.is_retry_due(attempts));
  attempts.failed(std::make_exception_ptr(UnavailableError("the disk")));
  EXPECT_FALSE(cadence.is_retry_due(attempts)) << "that was another's";
  cadence.attempted(now(), false);
  EXPECT_FALSE(cadence.is_retry_due(attempts));
  advance(4);
  EXPECT_TRUE(cadence.is_retry_due(attempts));
  cadence.attempted(now(), true);
  EXPECT_FALSE(cadence.is_retry_due(attempts));
}

TEST_F(CheckpointCadenceTest, AutoChoosesAfterEachThatWorked) {
  CadenceOptions options{.option = {"save_model_secs is kAuto", std::nullopt},
                         .interval = kShortestAutoInterval,
                         .chooses_interval = true};
  CheckpointCadence cadence(options);
  cadence.session_begins(now());
  EXPECT_EQ(cadence.interval(), kShortestAutoInterval);
  cadence.meter().begins(now(), std::nullopt);
  advance(10);
  cadence.meter().ends(now(), std::nullopt, Seconds{10});
  cadence.attempted(now(), false);
  EXPECT_EQ(cadence.interval(), kShortestAutoInterval);
  const LogRecorder log;
  cadence.attempted(now(), true);
  EXPECT_EQ(cadence.interval(), best_save_interval(RunHistory{}, Seconds{10}));
  EXPECT_THAT(log.text(LogLevel::kInfo), HasSubstr("The next checkpoint is due in"));
}

TEST_F(CheckpointCadenceTest, AutoWithoutAJournalSaysOnceThatNoInterruptionsAreKnown) {
  for (const bool is_auto : {false, true}) {
    for (const bool has_journal : {false, true}) {
      const LogRecorder log;
      CheckpointCadence cadence({.option = {"save_model_secs is kAuto", std::nullopt},
                                 .interval = kShortestAutoInterval,
                                 .chooses_interval = is_auto,
                                 .journal = has_journal ? journal_of_short_runs() : nullptr});
      for (int i = 0; i < 3; ++i) cadence.session_begins(now());
      const std::string text = log.text(LogLevel::kWarning), said = "there is no journal of earlier runs";
      EXPECT_EQ(text.find(said) != std::string::npos, is_auto && !has_journal);
      EXPECT_EQ(text.find(said), text.rfind(said)) << "once";
    }
  }
}

}  // namespace
}  // namespace longhaul
