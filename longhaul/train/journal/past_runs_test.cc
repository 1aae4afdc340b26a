#include "longhaul/train/journal/past_runs.h"

#include <gmock/gmock.h>

#include "longhaul/train/journal/run_journal_format.h"

namespace longhaul {
namespace {

using Kind = RunEvent::Kind;
using End = PastRun::End;

class PastRunsTest : public ::testing::Test {
 protected:
  void tell(Kind kind, double time, std::optional<int64_t> step = std::nullopt, const std::string& text = "") {
    const RunEvent event{.kind = kind, .time = time, .step = step, .text = text};
    history_.apply(event);
    lines_ += format_run_event(event);
  }
  void begin(double time) { tell(Kind::kBegan, time, std::nullopt, "process 7 started 1 boot b host train-3"); }
  const PastRun& last() const { return history_.runs().back(); }

  RunHistory history_;
  std::string lines_ = "longhaul run journal 1\n";
};

TEST_F(PastRunsTest, ARunHasWhatPeopleAskFor) {
  begin(100.25);
  tell(Kind::kRestored, 101, 40, "m-40");
  tell(Kind::kTraining, 102, 41);
  tell(Kind::kSaved, 110, 80, "m-80");
  tell(Kind::kInterrupted, 111, 85);
  tell(Kind::kRestored, 112, 80, "m-80");
  tell(Kind::kMark, 115, 84);
  tell(Kind::kFailed, 116, std::nullopt, "the loss\nis NaN");
  EXPECT_EQ(last(), (PastRun{.number = 1,
                             .began = 100.25,
                             .until = 116,
                             .end = End::kFailed,
                             .from_step = 40,
                             .last_step = 85,
                             .saved_step = 80,
                             .saves = 1,
                             .lost_sessions = 1,
                             .host = "train-3",
                             .why = "the loss is NaN"}));
}

TEST_F(PastRunsTest, ARunWithoutAnEndWasKilledOnceAnotherBegins) {
  begin(1);
  tell(Kind::kMark, 5, 10);
  EXPECT_EQ(last().end, End::kOpen);
  begin(100);
  ASSERT_EQ(history_.runs().size(), 2u);
  EXPECT_EQ(history_.runs()[0].end, End::kKilled);
  EXPECT_EQ(history_.runs()[0].until, 5);
  EXPECT_EQ(last().number, 2);
}

TEST_F(PastRunsTest, APreemptedRunIsDistinguishedFromOneThatHasFinished) {
  for (const char* text : {"", kPreemptedText}) {
    begin(1);
    tell(Kind::kStopRequested, 5, 10, kStopText);
    tell(Kind::kEnded, 6, std::nullopt, text);
    EXPECT_EQ(last().is_preempted(), text != std::string()) << text;
    EXPECT_EQ(last().why, text == std::string() ? "" : "preempted, to be started again");
  }
  begin(10);
  EXPECT_FALSE(last().is_preempted());
}

TEST_F(PastRunsTest, ATrainingThatBeginsAnewBeginsAtZero) {
  begin(1);
  tell(Kind::kInitialised, 2);
  EXPECT_EQ(last().from_step, 0);
}

TEST_F(PastRunsTest, AStopHasItsReasonAndACrashItsSignal) {
  begin(1);
  tell(Kind::kStopRequested, 5, 10, "signal 15");
  tell(Kind::kEnded, 6);
  EXPECT_EQ(last().end, End::kEnded);
  EXPECT_EQ(last().why, "signal 15");
  begin(10);
  tell(Kind::kDied, 11, std::nullopt, "signal 11 (Segmentation fault)");
  EXPECT_EQ(last().end, End::kDied);
  EXPECT_EQ(last().why, "signal 11 (Segmentation fault)");
}

TEST_F(PastRunsTest, HangsAreCounted) {
  begin(1);
  tell(Kind::kTraining, 5, 10);
  tell(Kind::kHung, 605, std::nullopt, "no step for 10 min");
  tell(Kind::kMark, 700, 11);
  tell(Kind::kHung, 1300, std::nullopt, "no step for 10 min");
  EXPECT_EQ(last().hangs, 2);
  EXPECT_EQ(last().end, End::kOpen) << "it is not over";
  begin(2000);
  tell(Kind::kTraining, 2001, 10);
  tell(Kind::kHung, 3000);
  EXPECT_EQ(last().hangs, 1);
  const RunHistory again = parse_run_journal(format_run_history(history_)).history;
  EXPECT_EQ(again.runs(), history_.runs());
  EXPECT_EQ(again, history_);
  EXPECT_EQ(parse_run_journal(lines_).history.runs(), history_.runs());
  EXPECT_EQ(parse_run_journal(lines_).damaged_lines, 0);
  ASSERT_FALSE(events_in_run_journal(format_run_history(history_) + lines_).empty());
}

TEST_F(PastRunsTest, ARowOfFailedSavesHasABeginningAnEndAndItsLastError) {
  begin(1);
  tell(Kind::kTraining, 5, 10);
  tell(Kind::kSaveFailed, 10, 20, text_of_failed_save(1, "m-20: No space\nleft"));
  EXPECT_EQ(last().failed_saves, (FailedSaves{1, 1, 10, "m-20: No space left"}));
  tell(Kind::kSaveFailed, 90, 120, text_of_failed_save(7, "m-120: File too large"));
  EXPECT_EQ(last().failed_saves, (FailedSaves{7, 7, 10, "m-120: File too large"})) << "five between are not told";
  const RunHistory again = parse_run_journal(format_run_history(history_)).history;
  EXPECT_EQ(again, history_) << "replacing the file keeps it";
  EXPECT_EQ(parse_run_journal(lines_).history.runs(), history_.runs());
  tell(Kind::kSaved, 100, 130, "m-130");
  EXPECT_EQ(last().failed_saves, (FailedSaves{.in_all = 7}));
  tell(Kind::kSaveFailed, 200, 220, text_of_failed_save(1, "again"));
  EXPECT_EQ(last().failed_saves, (FailedSaves{8, 1, 200, "again"}));
  tell(Kind::kSaveFailed, 210, std::nullopt, text_of_failed_save(0, "the checkpoint is there"));
  EXPECT_EQ(last().failed_saves, (FailedSaves{.in_all = 8}));
  begin(1000);
  EXPECT_EQ(last().failed_saves, FailedSaves{}) << "nobody knows yet";
  EXPECT_EQ(history_.runs()[0].failed_saves.in_all, 8);
  EXPECT_EQ(parse_run_journal(lines_).damaged_lines, 0);
  EXPECT_EQ(events_in_run_journal(format_run_history(history_) + lines_).size(), 1u);
}

TEST_F(PastRunsTest, AFailedSaveWhoseTextSaysNoNumberIsOne) {
  begin(1);
  for (const char* text : {"", "No space left", "-1 x", "99999999999999999999 x"}) {
    tell(Kind::kSaveFailed, 10, 20, text);
    EXPECT_EQ(last().failed_saves.in_a_row, 1) << text;
  }
}

TEST_F(PastRunsTest, OfALongErrorOfASaveBothEndsAreKept) {
  begin(1);
  tell(Kind::kSaveFailed, 10, 20, text_of_failed_save(1, "/begin/" + std::string(900, 'd') + ": No space left"));
  EXPECT_THAT(last().failed_saves.error, ::testing::StartsWith("/begin/ddd"));
  EXPECT_THAT(last().failed_saves.error, ::testing::EndsWith("ddd: No space left"));
  EXPECT_EQ(last().failed_saves.error.size(), PastRuns::kMostError);
}

TEST_F(PastRunsTest, SurviveTheReplacementOfTheFile) {
  for (int i = 0; i < 5; ++i) {
    begin(10 * i);
    tell(Kind::kMark, 10 * i + 0.1, i);
  }
  const RunHistory again = parse_run_journal(format_run_history(history_)).history;
  EXPECT_EQ(again, history_);
  EXPECT_EQ(again.runs(), history_.runs());
  EXPECT_EQ(parse_run_journal(lines_).history.runs(), history_.runs());
  RunHistory more = again;
  more.apply({.kind = Kind::kEnded, .time = 50});
  EXPECT_EQ(more.runs().back().end, End::kEnded) << "the run under way continues";
}

TEST_F(PastRunsTest, OnlyTheLastAreKeptAndReasonsAreShort) {
  for (int i = 0; i < 100; ++i) {
    begin(i);
    tell(Kind::kFailed, i + 0.5, std::nullopt, std::string(5000, 'x'));
  }
  EXPECT_EQ(history_.runs().size(), PastRuns::kMostRuns);
  EXPECT_EQ(last().number, 100);
  EXPECT_LT(format_run_history(history_).size(), 32u * 1024);
}

TEST_F(PastRunsTest, TheEventsOfTheNewestRunAreFound) {
  begin(1);
  tell(Kind::kMark, 5, 10);
  begin(10);
  tell(Kind::kMark, 15, 20);
  tell(Kind::kMark, 20, 30);
  const auto events = events_in_run_journal(format_run_history(history_) + lines_ + "00000000 bad\ncut off");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, Kind::kBegan);
  EXPECT_EQ(events[2].step, 30);
}

}  // namespace
}  // namespace longhaul
