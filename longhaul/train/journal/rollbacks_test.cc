#include "longhaul/train/journal/rollbacks.h"

#include <cmath>
#include <filesystem>
#include <limits>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Rollback back_to(int64_t step, int64_t diverged, int64_t count = 1) {
  return {.count = count,
          .diverged_step = diverged,
          .until_step = diverged + 1,
          .restored_step = step,
          .loss = std::numeric_limits<double>::quiet_NaN(),
          .skips = true,
          .checkpoint = "model.ckpt-" + std::to_string(step)};
}

TEST(Rollback, ItsTextHasAllOfIt) {
  for (const double loss : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 0.1}) {
    Rollback rollback = back_to(800, 910, 3);
    rollback.loss = loss;
    rollback.until_step = 914;
    EXPECT_EQ(Rollback::from_text(rollback.to_text()), rollback);
  }
  EXPECT_EQ(back_to(800, 910).to_text(), "1 910 911 800 nan 1 model.ckpt-800");
  EXPECT_EQ(back_to(800, 910).describe(),
            "rollback 1: the loss of step 910 went bad (nan); back to step 800, model.ckpt-800");
}

TEST(Rollback, OtherTextsAreNone) {
  for (const char* text :
       {"", "1", "1 910 911 800 nan", "1 910 911 800 nan 2 m", "0 910 911 800 nan 1 m", "1 910 910 800 nan 1 m",
        "1 910 911 -1 nan 1 m", "1 910 911 920 nan 1 m", "x 910 911 800 nan 1 m", "1 910 911 800 loss 1 m",
        "99999999999999999999 910 911 800 nan 1 m", "1 910 9223372036854775807 800 nan 1 m"}) {
    EXPECT_EQ(Rollback::from_text(text), std::nullopt) << text;
  }
}

TEST(Rollbacks, TheStepsThatTheyLeaveOutAreJoined) {
  Rollbacks rollbacks;
  rollbacks.remember(back_to(800, 910));
  rollbacks.remember(back_to(800, 930, 2));
  Rollback other = back_to(1000, 1010, 3);
  other.skips = false;
  rollbacks.remember(other);
  EXPECT_EQ(rollbacks.next_step(799), 799);
  EXPECT_EQ(rollbacks.next_step(800), 931);
  EXPECT_EQ(rollbacks.next_step(930), 931);
  EXPECT_EQ(rollbacks.next_step(1000), 1000);
  EXPECT_EQ(rollbacks.count(), 3);
}

TEST(Rollbacks, OfManyTheOldestAreForgottenButNotTheirNumber) {
  Rollbacks rollbacks;
  for (int64_t i = 1; i <= 100; ++i) rollbacks.remember(back_to(10 * i, 10 * i + 5, i));
  EXPECT_THAT(rollbacks.all(), SizeIs(64));
  EXPECT_EQ(rollbacks.count(), 100);
  for (int i = 0; i < 1000; ++i) rollbacks.refused("model.ckpt-" + std::to_string(i));
  EXPECT_THAT(rollbacks.unfit(), SizeIs(256));
  EXPECT_TRUE(rollbacks.is_unfit("model.ckpt-999"));
}

class DivergedJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunJournal> begin() {
    auto journal = std::make_unique<RunJournal>(directory.path(), RunJournalOptions{.clock = &clock});
    journal->begin();
    return journal;
  }
  std::string prefix(int64_t step) { return directory.file("model.ckpt-" + std::to_string(step)); }
  bool skips(RunJournal& journal, int64_t step) { return journal.skip_reason(prefix(step)).has_value(); }
  ParsedJournal on_disk() { return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))); }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
};

TEST_F(DivergedJournalTest, LaterCheckpointsAreSkippedByThisAndEveryLaterRestart) {
  {
    const auto journal = begin();
    journal->diverged(back_to(800, 910));
    EXPECT_THAT(journal->skip_reason(prefix(900)).value_or(""), HasSubstr("the loss of the training went bad"));
    EXPECT_TRUE(skips(*journal, 850));
    EXPECT_TRUE(journal->is_skipped(prefix(850)));
    EXPECT_FALSE(skips(*journal, 800));
    journal->restored(prefix(800), 800);
    journal->ended();
  }
  for (int run = 0; run < 3; ++run) {
    const auto journal = begin();
    EXPECT_TRUE(skips(*journal, 900) && skips(*journal, 850)) << run;
    EXPECT_FALSE(skips(*journal, 800) || skips(*journal, 860)) << "860 was not there then";
    journal->restored(prefix(800), 800);
  }
  EXPECT_EQ(on_disk().damaged_lines, 0);
  EXPECT_THAT(on_disk().history.rollbacks().all(), ElementsAre(back_to(800, 910)));
}

TEST_F(DivergedJournalTest, OneThatIsSavedAgainIsFit) {
  const auto journal = begin();
  journal->diverged(back_to(800, 910));
  EXPECT_TRUE(skips(*journal, 900) && skips(*journal, 850));
  journal->restored(prefix(800), 800);
  journal->saved(prefix(900), 900, {});
  EXPECT_FALSE(skips(*begin(), 900));
  EXPECT_TRUE(skips(*begin(), 850));
}

TEST_F(DivergedJournalTest, ASaveThatWasUnderWayMakesNoneFit) {
  const auto journal = begin();
  journal->diverged(back_to(800, 910));
  journal->saved(prefix(905), 905, {});
  EXPECT_TRUE(skips(*journal, 905));
  journal->restored(prefix(800), 800);
  EXPECT_TRUE(skips(*journal, 905));
}

// A model on servers lives on meanwhile.
TEST_F(DivergedJournalTest, ItGoesBackUntilTheRestoredModelTrains) {
  const auto goes_back = [this] { return on_disk().history.rollbacks().is_under_way(); };
  {
    const auto journal = begin();
    journal->diverged(back_to(800, 910));
    journal->saved(prefix(905), 905, {});
    EXPECT_TRUE(journal->history().rollbacks().is_under_way());
    EXPECT_FALSE(journal->history().found_model());
  }
  {
    const auto journal = begin();
    journal->found();
    EXPECT_TRUE(journal->history().found_model());
    journal->training(911);
    EXPECT_TRUE(journal->history().rollbacks().is_under_way()) << "it is the bad one that trains";
    journal->restored(prefix(800), 800);
    EXPECT_FALSE(journal->history().found_model());
    EXPECT_TRUE(journal->history().rollbacks().is_under_way());
  }
  EXPECT_TRUE(goes_back()) << "the sums have it, too";
  const auto journal = begin();
  EXPECT_TRUE(goes_back());
  journal->restored(prefix(800), 800);
  journal->training(800);
  EXPECT_FALSE(journal->history().rollbacks().is_under_way());
  begin();
  EXPECT_FALSE(goes_back());
}

// Also if the state file is newer, since it was written by a save that was under way.
TEST_F(DivergedJournalTest, AKillBeforeTheRestoreLosesNothing) {
  begin()->diverged(back_to(800, 910));
  write_checkpoint_state(FileSystem::real(), directory.path(), {.model_checkpoint_path = prefix(905)});
  std::filesystem::last_write_time(
      directory.file(kDefaultStateFile),
      std::filesystem::last_write_time(journal_path(directory.path())) + std::chrono::seconds(5));
  for (int run = 0; run < 3; ++run) {
    const auto journal = begin();
    EXPECT_TRUE(skips(*journal, 905)) << run;
    EXPECT_FALSE(skips(*journal, 800)) << run;
    EXPECT_EQ(journal->history().rollbacks().count(), 1);
  }
}

TEST_F(DivergedJournalTest, AnEndIsNoRollbackButLaterCheckpointsAreSkippedToo) {
  {
    const auto journal = begin();
    journal->diverged(back_to(800, 910), /*ends=*/true);
    journal->ended(std::make_exception_ptr(FailedPreconditionError("diverged")));
  }
  const auto journal = begin();
  EXPECT_EQ(journal->history().rollbacks().count(), 0);
  EXPECT_TRUE(skips(*journal, 900));
  EXPECT_FALSE(skips(*journal, 800));
}

TEST_F(DivergedJournalTest, AnInitialisedModelIsNotUndoneByWhatWasBefore) {
  const auto journal = begin();
  journal->diverged(back_to(800, 910));
  journal->initialised(0);
  EXPECT_FALSE(skips(*journal, 900));
  EXPECT_EQ(journal->history().rollbacks().count(), 0) << "it is another training";
}

TEST_F(DivergedJournalTest, ARollbackIsNoDeathOfTheCheckpoint) {
  for (int run = 0; run < 3; ++run) {
    const auto journal = begin();
    journal->restored(prefix(800), 800);
    journal->training(801);
    journal->diverged(back_to(800, 910, run + 1));
    journal->ended(std::make_exception_ptr(AbortedError("the model goes back")));
  }
  EXPECT_EQ(begin()->history().deaths_after("model.ckpt-800"), 0);
}

TEST_F(DivergedJournalTest, WhatWasLostIsRedoneInTheAccount) {
  const auto journal = begin();
  journal->restored(prefix(800), 800);
  journal->training(800);
  clock.advance(Seconds{110});
  journal->diverged(back_to(800, 909));
  journal->restored(prefix(800), 800);
  journal->training(800);
  clock.advance(Seconds{110});
  journal->mark(910);
  EXPECT_NEAR(journal->history().breakdown().redone.count(), 110, 0.1);
}

}  // namespace
}  // namespace longhaul
