#include "longhaul/console/trainings/run_listing.h"

#include <limits>

#include "longhaul/console/trainings/training_fixture.h"
#include "longhaul/console/trainings/training_status.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunListingTest : public TrainingTest {
 protected:
  Report list(double now, size_t last = 64) {
    return list_runs(files_, {.directory = directory_.path(), .last = last}, now, {});
  }
};

TEST_F(RunListingTest, HasEachRunAndWhatItLost) {
  train(1763721934, 1763721964, 0, 10);
  train(1763722000, 1763722030, 200, 10);
  tell(Kind::kFailed, 1763722031, std::nullopt, "the loss is NaN");
  train(1763722100, 1763722130, 200, 10);
  tell(Kind::kStopRequested, 1763722131, 501, "signal 15 (Terminated)");
  tell(Kind::kEnded, 1763722132);
  const Report report = list(1763723000);
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("1  2025-11-21 10:45:34 UTC    30 s"), HasSubstr("0 to 300"), HasSubstr("100  killed\n"),
                    HasSubstr("failed: the loss is NaN"), HasSubstr("ended: signal 15"), HasSubstr("in 3 runs: "),
                    HasSubstr("2 interruptions")));
  EXPECT_EQ(report.json["runs"][0]["lost_steps"], 100);
  EXPECT_EQ(report.json["runs"][1]["end"], "failed");
  EXPECT_EQ(report.json["all_runs"], 3);
}

TEST_F(RunListingTest, SaysWhereItWentBack) {
  train(1000, 1030, 0, 10);
  const Rollback rollback{.count = 1,
                          .diverged_step = 300,
                          .until_step = 301,
                          .restored_step = 200,
                          .loss = std::numeric_limits<double>::infinity(),
                          .checkpoint = "model.ckpt-200"};
  tell(Kind::kDiverged, 1031, 301, Rollbacks::text_of(rollback, /*ends=*/false));
  tell(Kind::kRestored, 1032, 200, "model.ckpt-200");
  const Report report = list(1040);
  EXPECT_THAT(report.text,
              AllOf(HasSubstr("\nrollback 1: the loss of step 300 went bad (inf); back to step 200, model.ckpt-200 "
                              "(1970-01-01 00:17:11 UTC, 9 s ago): 101 steps are lost\n"),
                    HasSubstr("1 interruption")));
  EXPECT_EQ(report.json["rollbacks"][0]["restored_step"], 200);
  EXPECT_EQ(report.json["rollbacks"][0]["lost_steps"], 101);
  EXPECT_EQ(report.json["rollbacks"][0]["time"], 1031);
  EXPECT_THAT(show_status(files_, {directory_.path()}, 1040, {}).text, HasSubstr("the loss went bad: rollback 1"));
}

TEST_F(RunListingTest, SaysWhatTheLastRunHasLostAndWhereItGoesOn) {
  train(1000, 1030, 0, 10);
  tell(Kind::kFailed, 1031, std::nullopt, "boom");
  EXPECT_THAT(list(2000).text, HasSubstr("\nsteps 1 to 300 (29 s of training) are in no checkpoint; start it again: it "
                                         "begins anew\n"));
  write_step(200);
  EXPECT_THAT(list(2000).text, HasSubstr("\nsteps 201 to 300 (29 s of training) are in no checkpoint; start it again: "
                                         "it continues from model.ckpt-200\n"));
  train(3000, 3030, 200, 10);
  tell(Kind::kEnded, 3031);
  EXPECT_THAT(list(4000).text, Not(HasSubstr("start it again"))) << "it has come to its end";
}

TEST_F(RunListingTest, CountsHangs) {
  train(1000, 1030, 0, 10);
  tell(Kind::kHung, 1700, std::nullopt, "no step for 11 min");
  tell(Kind::kDisturbed, 2000, std::nullopt, "the training hung: no step for 16 min");
  train(3000, 3030, 0, 10);
  tell(Kind::kHung, 3700);
  tell(Kind::kMark, 3800, 301);
  tell(Kind::kHung, 4500);
  tell(Kind::kEnded, 5000);
  const Report report = list(6000);
  EXPECT_THAT(report.text, AllOf(HasSubstr("disturbed (1 hang): the training hung: no step for 16 min\n"),
                                 HasSubstr("ended (2 hangs)\n")));
  EXPECT_EQ(report.json["runs"][0]["hangs"], 1);
  EXPECT_EQ(report.json["runs"][1]["hangs"], 2);
}

TEST_F(RunListingTest, CountsFailedSavesAndSaysWhatTheNewestRunsFailWith) {
  train(1000, 1030, 0, 10);
  tell(Kind::kSaveFailed, 1031, 300, text_of_failed_save(2, "No space left"));
  tell(Kind::kHung, 1700);
  tell(Kind::kSaved, 2000, 301, "m-301");
  tell(Kind::kEnded, 2000);
  train(3000, 3030, 301, 10);
  EXPECT_THAT(list(4000).text, AllOf(HasSubstr("ended (1 hang, 2 failed saves)\n"), Not(HasSubstr("have failed"))));
  tell(Kind::kSaveFailed, 3031, 601, text_of_failed_save(5, "No space left"));
  const Report report = list(4000);
  EXPECT_THAT(
      report.text,
      AllOf(HasSubstr("killed (5 failed saves)\n"), HasSubstr("\n5 saves in a row have failed: No space left ("),
            HasSubstr("steps 302 to 601 (29 s of training) are in no checkpoint"), HasSubstr("% in no checkpoint, ")));
  EXPECT_EQ(report.json["runs"][1]["failed_saves"], 5);
  EXPECT_EQ(report.json["failing_saves"]["error"], "No space left");
  EXPECT_EQ(report.json["unsaved_seconds"], 29);
}

TEST_F(RunListingTest, TheNewestMayBeRunning) {
  const double now = Clock::real().wall_time();
  train(now - 40, now - 10, 0, 10);
  own(this_process(), now);
  EXPECT_THAT(list(now).text, HasSubstr("running\n"));
  EXPECT_EQ(list(now).json["runs"][0]["end"], "running");
}

TEST_F(RunListingTest, OfASilentChiefNobodyKnowsWhetherItWasKilled) {
  const double now = Clock::real().wall_time();
  train(now - 400, now - 300, 0, 10);
  own(process_elsewhere(), now);
  const Report report = list(now + 1000);
  EXPECT_THAT(report.text, AllOf(HasSubstr("silent\n"), HasSubstr("1 min 38 s of training in no checkpoint yet"),
                                 Not(HasSubstr("% in no checkpoint"))));
  EXPECT_EQ(report.json["runs"][0]["end"], "silent");
  EXPECT_GT(report.json["goodput_percent"], 95);
}

TEST_F(RunListingTest, AnOpenRunWithoutAChiefWasKilledOrDied) {
  train(1000, 1030, 0, 10);
  EXPECT_EQ(list(2000).json["runs"][0]["end"], "killed");
  write_file_atomically(files_, journal_path(directory_.path()) + ".crash",
                        "longhaul crash record 1 run 1\nsignal 11\n");
  EXPECT_EQ(list(2000).json["runs"][0]["end"], "died");
  EXPECT_THAT(list(2000).text, HasSubstr("signal 11"));
}

TEST_F(RunListingTest, ListsTheLastOnly) {
  for (int i = 0; i < 5; ++i) train(1000 + 100 * i, 1030 + 100 * i, 0, 10);
  EXPECT_EQ(list(2000, 2).json["runs"].size(), 2u);
  EXPECT_THAT(list(2000, 2).text, HasSubstr("3 earlier runs are not listed"));
}

TEST_F(RunListingTest, SaysThatThereIsNoJournal) {
  EXPECT_THROW(list(0), NotFoundError);
}

}  // namespace
}  // namespace longhaul::console
