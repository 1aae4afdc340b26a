#include "longhaul/train/tenure/run_progress.h"

#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Phase = RunHistory::Phase;

class RunProgressTest : public ::testing::Test {
 protected:
  RunProgressTest() { journal->begin(); }

  Seconds now() { return clock.now(); }
  void look_after(Seconds time, std::optional<int64_t> step) {
    clock.advance(time);
    progress.look(now(), step);
  }
  RunHistory::Sums sums() {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history.sums();
  }
  std::vector<std::string> lines() {
    writer->flush();
    return describe(events_in_directory(directory.path()));
  }

  testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  std::shared_ptr<RunJournal> journal =
      std::make_shared<RunJournal>(directory.path(), RunJournalOptions{.clock = &clock});
  std::shared_ptr<FileWriter> writer =
      std::make_shared<FileWriter>(directory.path(), FileWriterOptions{.clock = &clock});
  RunProgress progress{journal, writer, Seconds{120}};
};

TEST_F(RunProgressTest, TheFirstStepIsNotedWhenItIsMade) {
  progress.session_begins(now(), 7);
  look_after(Seconds{1}, 7);
  EXPECT_EQ(sums().phase, Phase::kStarting);
  look_after(Seconds{1}, 8);
  EXPECT_EQ(sums().phase, Phase::kTraining);
  EXPECT_EQ(sums().step, 8);
}

TEST_F(RunProgressTest, WhereNobodyCountsStepsTheFirstOneIsMadeAtOnce) {
  progress.session_begins(now(), std::nullopt, /*counts_steps=*/false);
  look_after(Seconds{0}, std::nullopt);
  EXPECT_EQ(sums().phase, Phase::kTraining);
}

TEST_F(RunProgressTest, AStepThatIsNotKnownIsNone) {
  progress.session_begins(now(), 7);
  look_after(Seconds{1}, std::nullopt);
  EXPECT_EQ(sums().phase, Phase::kStarting);
}

TEST_F(RunProgressTest, LooksComeLessAndLessOftenUntilTheFirstStepThenAtTheMarks) {
  progress.session_begins(now(), 0);
  EXPECT_EQ(progress.next_look(), Seconds{0.05});
  EXPECT_EQ(progress.next_look(), Seconds{0.1});
  for (int i = 0; i < 10; ++i) progress.next_look();
  EXPECT_EQ(progress.next_look(), kJournalMarkSecs);
  progress.session_begins(now(), 0);
  EXPECT_EQ(progress.next_look(), Seconds{0.05}) << "of the next session";
  look_after(Seconds{1}, 1);
  EXPECT_EQ(progress.next_look(), kJournalMarkSecs);
}

TEST_F(RunProgressTest, WhoSeesEachStepLooksWhenAMarkIsDue) {
  progress.session_begins(now(), 0);
  EXPECT_TRUE(progress.is_look_due(now())) << "for the first step";
  look_after(Seconds{1}, 1);
  EXPECT_FALSE(progress.is_look_due(now()));
  clock.advance(Seconds{4.9});
  EXPECT_FALSE(progress.is_look_due(now()));
  clock.advance(Seconds{0.2});
  EXPECT_TRUE(progress.is_look_due(now()));
  progress.look(now(), 5);
  EXPECT_EQ(sums().step, 5);
  EXPECT_FALSE(progress.is_look_due(now()));
}

TEST_F(RunProgressTest, MarksComeBeforeTheFirstStepToo) {
  progress.session_begins(now(), 0);
  const double began = sums().until;
  look_after(Seconds{4}, 0);
  EXPECT_EQ(sums().until, began);
  look_after(Seconds{2}, 0);
  EXPECT_NEAR(sums().until, began + 6, 0.01);
  EXPECT_EQ(sums().phase, Phase::kStarting);
}

TEST_F(RunProgressTest, TheGoodputIsWrittenAsOftenAsItIsWanted) {
  progress.session_begins(now(), 0);
  look_after(Seconds{1}, 1);
  look_after(Seconds{118}, 50);
  EXPECT_THAT(lines(), Not(Contains(HasSubstr("goodput"))));
  look_after(Seconds{1}, 51);
  look_after(Seconds{60}, 80);
  EXPECT_THAT(lines(), Contains(StartsWith("summary longhaul/goodput=")).Times(1));
  progress.session_begins(now(), 0);
  look_after(Seconds{60}, 90);
  EXPECT_THAT(lines(), Contains(StartsWith("summary longhaul/goodput=")).Times(2)) << "whichever session it is of";
}

TEST_F(RunProgressTest, AfterAnErrorTheJournalHasTheNewestStepAndWhatIsUncounted) {
  progress.session_begins(now(), 0);
  look_after(Seconds{1}, 1);
  clock.advance(Seconds{4});
  progress.interrupted_after(90, Seconds{1.5});
  EXPECT_EQ(sums().step, 90);
  EXPECT_NEAR(journal->history().uncounted().time.count(), 1.5, 0.01);
  EXPECT_EQ(journal->history().uncounted().after, 90);
  progress.interrupted(95);
  EXPECT_EQ(sums().step, 95);
  EXPECT_EQ(journal->history().uncounted(), Uncounted{});
}

TEST_F(RunProgressTest, AStepThatWasReadBeforeTheLastMarkTellsNothing) {
  progress.session_begins(now(), 0);
  look_after(Seconds{1}, 100);
  clock.advance(Seconds{2});
  progress.interrupted_after(90, Seconds{3});
  EXPECT_EQ(sums().step, 100);
  EXPECT_NEAR(journal->history().uncounted().time.count(), 2, 0.01);
}

TEST_F(RunProgressTest, AStopIsNotedOnce) {
  progress.session_begins(now(), 0);
  look_after(Seconds{1}, 1);
  progress.stop_requested(2);
  EXPECT_TRUE(sums().stop_requested);
  const double until = sums().until;
  clock.advance(Seconds{1});
  progress.stop_requested(3);
  EXPECT_EQ(sums().until, until);
}

TEST_F(RunProgressTest, StepsAfterTheStopAreMarked) {
  progress.session_begins(now(), 0);
  look_after(Seconds{1}, 1);
  progress.stop_requested(2);
  clock.advance(Seconds{5});
  progress.look_after_stop(7);
  EXPECT_EQ(sums().step, 7);
  EXPECT_EQ(sums().phase, Phase::kStopping);
  const double until = sums().until;
  clock.advance(Seconds{5});
  progress.look_after_stop(7);
  progress.look_after_stop(std::nullopt);
  EXPECT_EQ(sums().until, until) << "there is nothing to tell";
}

TEST(RunProgress, WithoutAJournalNothingIsNoted) {
  RunProgress progress(nullptr);
  progress.session_begins(Seconds{0}, 0);
  progress.look(Seconds{10}, 1);
  progress.stop_requested(1);
  progress.look_after_stop(2);
  progress.interrupted(3);
  progress.interrupted_after(3, Seconds{1});
}

}  // namespace
}  // namespace longhaul
