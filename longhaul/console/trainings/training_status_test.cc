#include "longhaul/console/trainings/training_status.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "longhaul/checkpoint/files/corrupt_set.h"
#include "longhaul/console/text/shown_text.h"
#include "longhaul/console/trainings/training_fixture.h"
#include "longhaul/io/process/process_stat.h"
#include "longhaul/testing/faulty_file_system.h"

namespace longhaul::console {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TrainingStatusTest : public TrainingTest {
 protected:
  TrainingStatusTest() : now_(Clock::real().wall_time()) {}

  TrainingStatus status() { return status_of(files_, directory_.path(), now_); }
  std::string text(const Terminal& terminal = {}) {
    return show_status(files_, {directory_.path()}, now_, terminal).text;
  }

  static void set_modified(const std::string& path, double time) {
    const timespec at{.tv_sec = static_cast<time_t>(time), .tv_nsec = 0};
    const timespec times[2] = {at, at};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }

  const double now_;
};

TEST_F(TrainingStatusTest, APreemptedTrainingIsToBeStartedAgainSoon) {
  write_step(400);
  train(now_ - 2000, now_ - 1000, 400, 10);
  tell(Kind::kStopRequested, now_ - 999, 500, kStopText);
  tell(Kind::kEnded, now_ - 998, std::nullopt, kPreemptedText);
  EXPECT_THAT(status().notes, Contains("it stopped: preempted, to be started again"));
  EXPECT_THAT(status().problems, Contains(AllOf(HasSubstr("it was preempted 16 min"), HasSubstr("model.ckpt-400"))));
  train(now_ - 100, now_ - 50, 400, 10);
  tell(Kind::kStopRequested, now_ - 49, 500, kStopText);
  tell(Kind::kEnded, now_ - 48, std::nullopt, kPreemptedText);
  EXPECT_THAT(status().problems, IsEmpty()) << "whoever starts it again may be at it";
  train(now_ - 40, now_ - 30, 400, 10);
  tell(Kind::kStopRequested, now_ - 29, 500, kStopText);
  tell(Kind::kEnded, now_ - 28);
  EXPECT_THAT(status().notes, Not(Contains(HasSubstr("it stopped")))) << "it has made all its steps";
}

TEST_F(TrainingStatusTest, ATrainingThatRunsIsFine) {
  write_step(400);
  train(now_ - 100, now_ - 2, 400, 10);
  own(this_process(), now_);
  const TrainingStatus status = this->status();
  EXPECT_EQ(status.state, "training");
  EXPECT_EQ(status.step, 1350);
  EXPECT_NEAR(status.steps_per_sec.value(), 10, 0.01);
  EXPECT_THAT(status.problems, IsEmpty());
  EXPECT_THAT(text(), AllOf(HasSubstr(": training\n"), HasSubstr("1350, 10 steps/s"), HasSubstr("model.ckpt-400, "),
                            HasSubstr("goodput     9"), HasSubstr(" free, room for "), HasSubstr("last heartbeat ")));
  const Report report = show_status(files_, {directory_.path()}, now_, {});
  EXPECT_TRUE(report.is_fine);
  EXPECT_EQ(report.json["directories"][0]["chief"]["state"], "alive");
  EXPECT_EQ(report.json["directories"][0]["step"], 1350);
}

TEST_F(TrainingStatusTest, NamesADeadChiefAndWhereAStartContinues) {
  write_step(400);
  train(now_ - 100, now_ - 50, 400, 10);
  own(dead_process(), now_ - 50);
  const TrainingStatus status = this->status();
  EXPECT_EQ(status.state, "killed");
  EXPECT_THAT(status.problems, ElementsAre(AllOf(HasSubstr("is dead"), HasSubstr("continues from model.ckpt-400"))));
}

// A hang has ended it: no destructor was run, so its owner record remains.
TEST_F(TrainingStatusTest, AChiefWhoseEndIsInTheJournalWasNotKilled) {
  write_step(400);
  own(dead_process(), now_ - 50);
  train(now_ - 100, now_ - 50, 400, 10);
  tell(Kind::kHung, now_ - 45, std::nullopt, "no step for 10 min");
  tell(Kind::kDisturbed, now_ - 40, std::nullopt, "the training hung: no step for 16 min");
  const TrainingStatus status = this->status();
  EXPECT_EQ(status.state, "disturbed");
  EXPECT_NEAR(status.ended_at.value(), now_ - 40, 0.01);
  EXPECT_THAT(status.problems,
              ElementsAre(AllOf(HasSubstr("run 1 disturbed: the training hung: no step for 16 min ("),
                                HasSubstr(", 40 s ago); its log and its events (longhaul/hang) have the stacks"),
                                HasSubstr("; steps 401 to 900 ("), HasSubstr("continues from model.ckpt-400"))));
  own(dead_process(), now_ + 200);
  EXPECT_EQ(this->status().state, "killed") << "a chief that came later, and has written nothing";
}

TEST_F(TrainingStatusTest, AChiefElsewhereIsJudgedByItsHeartbeat) {
  train(now_ - 100, now_ - 2, 400, 10);
  own(process_elsewhere(), now_);
  EXPECT_EQ(status().state, "training");
  EXPECT_EQ(status_of(files_, directory_.path(), now_ + 1000).state, "silent");
  EXPECT_THAT(status_of(files_, directory_.path(), now_ + 1000).problems,
              Contains(HasSubstr("far-away, has been silent")));
}

TEST_F(TrainingStatusTest, NoticesThatNoStepIsMade) {
  train(now_ - 1000, now_ - 700, 400, 10);
  for (double time = now_ - 695; time < now_; time += 5) tell(Kind::kMark, time, 3400);
  own(this_process(), now_);
  EXPECT_THAT(status().problems, Contains(HasSubstr("no step has been made for 11 min")));
}

TEST_F(TrainingStatusTest, KnowsAHangUntilTheNextStep) {
  train(now_ - 1000, now_ - 700, 400, 10);
  tell(Kind::kHung, now_ - 90, std::nullopt, "no step for 10 min (limit 10 min); train waits for the queue");
  for (double time = now_ - 85; time < now_; time += 5) tell(Kind::kMark, time, 3400);
  own(this_process(), now_);
  EXPECT_THAT(status().problems,
              ElementsAre(AllOf(HasSubstr("it hangs: at "), HasSubstr("there was no step for 10 min (limit 10 min); "
                                                                      "train waits for the queue: its log"))));
  tell(Kind::kMark, now_, 3401);
  EXPECT_THAT(status().problems, IsEmpty());
}

TEST_F(TrainingStatusTest, NoticesAJournalWithoutASignOfLife) {
  train(now_ - 1000, now_ - 700, 400, 10);
  own(this_process(), now_);
  EXPECT_THAT(status().problems, Contains(HasSubstr("no sign of life for 11 min")));
}

TEST_F(TrainingStatusTest, NoticesThatCheckpointsStopped) {
  begin(now_ - 10000);
  tell(Kind::kInitialised, now_ - 9999, 0);
  tell(Kind::kTraining, now_ - 9998, 1);
  int64_t step = 1;
  for (double time = now_ - 9900; time < now_; time += 5) {
    tell(Kind::kMark, time, ++step);
    if (step % 20 == 0 && time < now_ - 2000) tell(Kind::kSaved, time + 1, step, "m");
  }
  own(this_process(), now_);
  EXPECT_THAT(status().problems, Contains(AllOf(HasSubstr("the last checkpoint is 3"), HasSubstr("every 1 min 40 s"))));
}

TEST_F(TrainingStatusTest, SavesThatFailAreWrongUntilOneWorks) {
  write_step(400);
  train(now_ - 800, now_ - 700, 400, 10);
  own(this_process(), now_);
  tell(Kind::kSaveFailed, now_ - 700, 1400, text_of_failed_save(1, "model.ckpt-1400: No space left on device"));
  tell(Kind::kMark, now_ - 10, 8300);
  EXPECT_THAT(status().problems, ElementsAre(HasSubstr("the last save has failed: model.ckpt-1400: No space left")));
  tell(Kind::kSaveFailed, now_ - 1, 8380, text_of_failed_save(12, "model.ckpt-8380: No space left on device"));
  EXPECT_THAT(status().problems,
              ElementsAre(AllOf(HasSubstr("12 saves in a row have failed: model.ckpt-8380: No space left on device ("),
                                HasSubstr(", 11 min 40 s ago); steps 401 to 8380 (13 min 17 s of training) are in no "
                                          "checkpoint; training continues"),
                                HasSubstr("make room"))));
  const Report report = show_status(files_, {directory_.path()}, now_, {});
  EXPECT_FALSE(report.is_fine);
  EXPECT_EQ(report.json["directories"][0]["failing_saves"]["in_a_row"], 12);
  EXPECT_EQ(report.json["directories"][0]["failing_saves"]["error"], "model.ckpt-8380: No space left on device");
  EXPECT_NEAR(report.json["directories"][0]["unsaved_seconds"].get<double>(), 797, 0.1);
  tell(Kind::kSaved, now_, 8400, "model.ckpt-8400");
  EXPECT_THAT(status().problems, IsEmpty());
  EXPECT_TRUE(show_status(files_, {directory_.path()}, now_, {}).json["directories"][0]["failing_saves"].is_null());
}

TEST_F(TrainingStatusTest, OfARunThatIsOverTheStepsInNoCheckpointAreLost) {
  write_step(400);
  train(now_ - 800, now_ - 100, 400, 10);
  tell(Kind::kSaveFailed, now_ - 99, 7390, text_of_failed_save(3, "No space left"));
  own(dead_process(), now_ - 50);
  EXPECT_THAT(status().problems,
              Contains(AllOf(HasSubstr("3 saves in a row have failed: No space left ("),
                             HasSubstr("steps 401 to 7400 (11 min 39 s"), HasSubstr("before you start it again"))));
  EXPECT_THAT(text(), HasSubstr("goodput     0.0 % of 11 min 41 s in 1 run, 0 interruptions; 11 min 39 s of training "
                                "was in no checkpoint"));
}

// A full disk keeps the heartbeat of a chief elsewhere away, which still has all that it has made.
TEST_F(TrainingStatusTest, WhatASilentChiefHasNotSavedIsNotTakenForLost) {
  write_step(400);
  train(now_ - 800, now_ - 100, 400, 10);
  tell(Kind::kSaveFailed, now_ - 99, 7390, text_of_failed_save(3, "No space left"));
  own(process_elsewhere(), now_ - 95);
  set_modified(owner_path(directory_.path()), now_ - 95);
  ASSERT_EQ(status().state, "silent");
  EXPECT_THAT(
      status().problems,
      Contains(AllOf(HasSubstr("3 saves in a row have failed: No space left ("),
                     HasSubstr("steps 401 to 7400 (11 min 39 s"), HasSubstr("if the process still runs, do not end it"),
                     Not(HasSubstr("future")), Not(HasSubstr("before you start it again")))));
  EXPECT_THAT(text(), HasSubstr("11 min 39 s of training in no checkpoint yet"));
  EXPECT_GT(show_status(files_, {directory_.path()}, now_, {}).json["directories"][0]["goodput_percent"], 99);
}

TEST_F(TrainingStatusTest, SaysWhichStepsAreInNoCheckpointAlsoAfterARollback) {
  train(now_ - 500, now_ - 300, 400, 10);
  tell(Kind::kSaved, now_ - 299, 2400, "model.ckpt-2400");
  tell(Kind::kMark, now_ - 250, 2500);
  tell(Kind::kDiverged, now_ - 249, 2501);
  tell(Kind::kRestored, now_ - 248, 400, "model.ckpt-400");
  write_step(2400);
  set_modified(path("model.ckpt-2400.index"), now_ - 299);
  tell(Kind::kTraining, now_ - 247, 400);
  tell(Kind::kMark, now_ - 47, 2450);
  tell(Kind::kSaveFailed, now_ - 47, 2450, text_of_failed_save(1, "No space left"));
  own(this_process(), now_);
  EXPECT_THAT(status().problems,
              Contains(HasSubstr("steps 401 to 2450 (3 min 20 s of training) are in no checkpoint")));
}

TEST_F(TrainingStatusTest, AFinalValidationAfterTheLastSaveIsNoLostTraining) {
  train(now_ - 2000, now_ - 1500, 400, 10);
  tell(Kind::kSaved, now_ - 1500, 5400, "model.ckpt-5400");
  for (double time = now_ - 1495; time < now_ - 300; time += 5) tell(Kind::kMark, time, 5400);
  tell(Kind::kStopRequested, now_ - 299, 5400);
  tell(Kind::kEnded, now_ - 298);
  EXPECT_THAT(text(), Not(HasSubstr("in no checkpoint")));
  EXPECT_EQ(show_status(files_, {directory_.path()}, now_, {}).json["directories"][0]["unsaved_seconds"], 0);
}

TEST_F(TrainingStatusTest, SaysWhatOfTheGoodputIsInNoCheckpointYet) {
  write_step(400);
  train(now_ - 100, now_ - 50, 400, 10);
  tell(Kind::kSaved, now_ - 50, 900, "model.ckpt-900");
  tell(Kind::kMark, now_ - 2, 1380);
  own(this_process(), now_);
  EXPECT_THAT(text(), HasSubstr("0 interruptions; 48 s of training in no checkpoint yet"));
}

// A run that saves at these intervals, and then makes steps for so long without a checkpoint.
class CheckpointRhythmTest : public TrainingStatusTest {
 protected:
  void save_at_intervals(const std::vector<double>& intervals, double since) {
    double time = now_ - since;
    for (const double interval : intervals) time -= interval;
    begin(time - 1);
    tell(Kind::kInitialised, time - 1, 0);
    tell(Kind::kTraining, time, 0);
    int64_t step = 0;
    for (const double interval : intervals) tell(Kind::kSaved, time += interval, ++step, "m");
    tell(Kind::kMark, now_ - 2, ++step);
    own(this_process(), now_);
  }
  bool misses_one() {
    for (const std::string& problem : status().problems) {
      if (problem.find("the last checkpoint is ") != problem.npos) return true;
    }
    return false;
  }
};

TEST_F(CheckpointRhythmTest, AFewLongIntervalsAreNoReasonToWorry) {
  save_at_intervals({3600}, 7100);
  EXPECT_FALSE(misses_one());
}

TEST_F(CheckpointRhythmTest, OneSaveAndNoneForLongIsNoticed) {
  save_at_intervals({600}, 7300);
  EXPECT_TRUE(misses_one());
}

TEST_F(CheckpointRhythmTest, IntervalsThatDoubleAreNoticedByTheNewest) {
  const std::vector<double> doubling{5, 10, 20, 40, 80, 160, 320, 640, 1280};
  save_at_intervals(doubling, 2560 + 60);
  EXPECT_FALSE(misses_one()) << "the next one comes after 2560 s";
  journal_ = "longhaul run journal 1\n";
  save_at_intervals(doubling, 4000);
  EXPECT_TRUE(misses_one());
}

TEST_F(CheckpointRhythmTest, AJournalThatWasReplacedStillKnowsTheInterval) {
  save_at_intervals({300, 300, 300, 300}, 8000);
  journal_ = format_run_history(parse_run_journal(journal_).history);
  tell(Kind::kMark, now_ - 2, 9);
  write_step(4);
  set_modified(path("model.ckpt-4.index"), now_ - 8000);
  EXPECT_TRUE(misses_one());
  set_modified(path("model.ckpt-4.index"), now_ - 100);
  EXPECT_FALSE(misses_one()) << "the journal could not be written, but a checkpoint was";
}

TEST_F(CheckpointRhythmTest, TheSaveAtTheBeginningIsNoInterval) {
  save_at_intervals({1}, 4 * 3600 + 60);
  EXPECT_FALSE(misses_one()) << "the next one may come after many hours";
  journal_ = format_run_history(parse_run_journal(journal_).history);
  tell(Kind::kMark, now_ - 2, 9);
  write_step(1);
  set_modified(path("model.ckpt-1.index"), now_ - 4 * 3600 - 60);
  EXPECT_FALSE(misses_one()) << "nor if the file was replaced since";
  journal_ = "longhaul run journal 1\n";
  save_at_intervals({1, 4 * 3600}, 11 * 3600);
  EXPECT_FALSE(misses_one());
  journal_ = "longhaul run journal 1\n";
  save_at_intervals({1, 4 * 3600}, 13 * 3600);
  EXPECT_THAT(status().problems, Contains(AllOf(HasSubstr("is 13 h"), HasSubstr("used to come every 4 h"))));
}

TEST_F(CheckpointRhythmTest, AFileServerWhoseClockIsAheadHidesNothing) {
  save_at_intervals({300, 300, 300, 300}, 8000);
  write_step(4);
  set_modified(path("model.ckpt-4.index"), now_ + 3600);
  EXPECT_TRUE(misses_one()) << "the journal knows when that was saved";
}

TEST_F(CheckpointRhythmTest, ARunThatHasJustBegunOwesNone) {
  save_at_intervals({}, 6000);
  EXPECT_FALSE(misses_one());
  EXPECT_THAT(status().problems, IsEmpty());
}

TEST_F(TrainingStatusTest, AProcessThatIsStoppedAsAWholeDoesNotTrain) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_EQ(::kill(child, SIGSTOP), 0);
  ASSERT_EQ(::waitpid(child, nullptr, WUNTRACED), child);
  ProcessIdentity process = this_process();
  process.pid = child;
  process.start_time = process_stat(child).value().start_time;
  train(now_ - 1000, now_ - 500, 400, 10);
  own(process, now_);
  EXPECT_EQ(status().state, "stopped");
  EXPECT_THAT(status().problems, ElementsAre(AllOf(HasSubstr("is stopped by a signal (SIGSTOP)"),
                                                   HasSubstr(fmt::format("`kill -CONT {}`", child)))));
  EXPECT_EQ(show_status(files_, {directory_.path()}, now_, {}).json["directories"][0]["chief"]["held"], true);
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(status().state, "killed");
}

TEST_F(TrainingStatusTest, NoticesThatNothingWasEverSaved) {
  train(now_ - 8000, now_ - 1, 0, 1);
  own(this_process(), now_);
  EXPECT_THAT(status().problems, Contains(HasSubstr("has saved nothing in 2 h 13 min")));
}

TEST_F(TrainingStatusTest, HasTheErrorOfARunThatFailed) {
  train(now_ - 100, now_ - 50, 400, 10);
  tell(Kind::kFailed, now_ - 49, std::nullopt, "the loss is \x1b[2J NaN");
  EXPECT_EQ(status().state, "failed");
  EXPECT_THAT(status().problems, Contains(HasSubstr("run 1 failed: the loss")));
  EXPECT_THAT(text(), Not(HasSubstr("\x1b")));
}

TEST_F(TrainingStatusTest, AStoppedOrFinishedRunIsNotWrong) {
  train(now_ - 100, now_ - 50, 400, 10);
  tell(Kind::kStopRequested, now_ - 49, 900, "signal 15 (Terminated)");
  tell(Kind::kEnded, now_ - 48);
  EXPECT_EQ(status().state, "ended");
  EXPECT_THAT(status().problems, IsEmpty());
  EXPECT_THAT(status().notes, Contains(HasSubstr("it stopped: signal 15")));
}

TEST_F(TrainingStatusTest, NamesDamagedCheckpoints) {
  write_step(1);
  write_step(2);
  write_step(3);
  mark_corrupt(files_, path("model.ckpt-1"));
  files_.remove(path("model.ckpt-2.data-00000-of-00001"));
  EXPECT_THAT(status().problems, ElementsAre(HasSubstr("model.ckpt-2 lacks data files")));
  EXPECT_THAT(status().notes, ElementsAre(HasSubstr("1 damaged checkpoint is set aside")));
}

class FullDisk : public testing::FaultyFileSystem {
 public:
  uint64_t free_bytes(const std::string&) override { return 1000; }
};

TEST_F(TrainingStatusTest, NamesAFullDisk) {
  FullDisk files;
  write_step(1);
  EXPECT_THAT(status_of(files, directory_.path(), now_).problems, Contains(HasSubstr("the disk has 1 kB free")));
}

TEST_F(TrainingStatusTest, AdvisesOfAFullDiskWhatIsNotRefused) {
  FullDisk files;
  const auto problem = [&] {
    for (const std::string& each : status_of(files, directory_.path(), now_).problems) {
      if (each.starts_with("the disk has ")) return each;
    }
    return std::string();
  };
  write_step(1);
  EXPECT_THAT(problem(), Not(HasSubstr("prune"))) << "there is nothing to prune";
  write_step(2);
  EXPECT_THAT(problem(), HasSubstr("`longhaul prune " + directory_.path() + " --keep=1` shows which"));
  own(this_process(), now_);
  EXPECT_THAT(problem(), HasSubstr("`longhaul prune` is refused while it trains"));
  own(process_elsewhere(), now_ - 95);
  set_modified(owner_path(directory_.path()), now_ - 95);
  EXPECT_THAT(problem(), HasSubstr("do not prune this directory, unless the chief is dead"));
}

TEST_F(TrainingStatusTest, NamesCheckpointsThatRunsDieOf) {
  for (int i = 0; i < 2; ++i) {
    train(now_ - 100 + 20 * i, now_ - 90 + 20 * i, 400, 10);
    tell(Kind::kFailed, now_ - 85 + 20 * i, std::nullopt, "boom");
  }
  EXPECT_THAT(status().problems, Contains(HasSubstr("2 runs restored from model.ckpt-400 died")));
}

TEST_F(TrainingStatusTest, WhatIsNoTrainingIsWrong) {
  EXPECT_EQ(status().state, "no training");
  EXPECT_FALSE(show_status(files_, {directory_.path()}, now_, {}).is_fine);
  EXPECT_EQ(status_of(files_, path("none"), now_).state, "unreadable");
  write_file_atomically(files_, path("file"), "x");
  EXPECT_FALSE(status_of(files_, path("file"), now_).problems.empty());
}

TEST_F(TrainingStatusTest, OneBadDirectoryDoesNotHideAnother) {
  write_step(1);
  const Report report = show_status(files_, {path("none"), directory_.path()}, now_, {});
  EXPECT_FALSE(report.is_fine);
  EXPECT_THAT(report.text, AllOf(HasSubstr("none: unreadable"), HasSubstr("model.ckpt-1")));
}

TEST_F(TrainingStatusTest, DamagedRecordsAreProblemsAndNoEnd) {
  write_step(1);
  write_file_atomically(files_, owner_path(directory_.path()), "no record");
  tell(Kind::kBegan, now_);
  write_file_atomically(files_, journal_path(directory_.path()), journal_ + "00000000 garbage\n");
  EXPECT_THAT(status().problems, Contains(HasSubstr("chief.owner")));
  EXPECT_THAT(status().notes, Contains(HasSubstr("1 damaged lines")));
}

TEST_F(TrainingStatusTest, AJournalOfWhichNothingCanBeReadIsWrong) {
  const std::string journal = journal_path(directory_.path());
  for (const std::string& text : {std::string(), std::string("garbage\n00000000 began 5 - x\n"),
                                  std::string(5000, '\0'), "longhaul run journal 1\n" + std::string(5000, '\0')}) {
    write_file_atomically(files_, journal, text);
    EXPECT_EQ(status().state, "not running");
    EXPECT_THAT(status().problems, ElementsAre(HasSubstr(journal + ": no line of it can be read")));
  }
  files_.remove(journal);
  ASSERT_EQ(::symlink("run.journal", journal.c_str()), 0);
  EXPECT_EQ(status().state, "not running");
  EXPECT_THAT(status().problems, ElementsAre(HasSubstr(journal))) << "and not that there is no training";
}

TEST_F(TrainingStatusTest, LinesFitANarrowTerminal) {
  write_step(400);
  train(now_ - 100, now_ - 50, 400, 10);
  own(dead_process(), now_ - 50);
  const std::string all = text({.is_terminal = true, .columns = 40});
  for (size_t begin = all.find('\n') + 1; begin < all.size();) {
    const size_t end = all.find('\n', begin);
    EXPECT_LE(columns_of(all.substr(begin, end - begin)), 40u) << all.substr(begin, end - begin);
    begin = end + 1;
  }
}

TEST_F(TrainingStatusTest, WritesNothing) {
  write_step(400);
  train(now_ - 100, now_ - 50, 400, 10);
  own(dead_process(), now_ - 50);
  const auto before = files_.list(directory_.path());
  text();
  EXPECT_EQ(files_.list(directory_.path()), before);
}

}  // namespace
}  // namespace longhaul::console
