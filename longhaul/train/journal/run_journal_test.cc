#include "longhaul/train/journal/run_journal.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "longhaul/checkpoint/files/checkpoint_state.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/io/records/crc32c.h"
#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/train_fixture.h"

namespace longhaul {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RunJournalTest : public ::testing::Test {
 protected:
  std::unique_ptr<RunJournal> begin() {
    auto journal = std::make_unique<RunJournal>(
        directory.path(), RunJournalOptions{.skip_crashing_checkpoints = skips, .files = &files, .clock = &clock});
    journal->begin();
    return journal;
  }
  // A run that is killed after it was restored, before its first step.
  void be_killed_after(const std::string& prefix) {
    const auto journal = begin();
    journal->skip_reason(prefix);
    journal->restored(prefix, 100);
  }
  // One that fails of its own.
  void die_after(const std::string& prefix) {
    const auto journal = begin();
    journal->skip_reason(prefix);
    journal->restored(prefix, 100);
    journal->ended(std::make_exception_ptr(InternalError("diverged")));
  }
  // One that dies of a signal, in a process of its own.
  void crash_after(const std::string& prefix) {
    const pid_t child = fork();
    if (child == 0) {
      const auto journal = begin();
      journal->skip_reason(prefix);
      journal->restored(prefix, 100);
      std::abort();
    }
    waitpid(child, nullptr, 0);
  }
  std::string text() { return read_file(FileSystem::real(), path()); }
  void put(const std::string& contents) { write_file_atomically(FileSystem::real(), path(), contents); }
  std::string path() const { return journal_path(directory.path()); }
  std::string prefix() const { return directory.file("model.ckpt-100"); }
  RunHistory on_disk() { return parse_run_journal(text()).history; }

  testing::TemporaryDirectory directory;
  testing::FaultyFileSystem files;
  testing::FakeClock clock;
  bool skips = true;
};

TEST_F(RunJournalTest, TellsTheNextRunWhereTheTimeWent) {
  {
    const auto journal = begin();
    journal->initialised(0);
    journal->training(0);
    clock.advance(Seconds{100});
    journal->saved(prefix(), 100, {.stalled = Seconds{2}, .lasted = Seconds{5}, .cost = Seconds{3}});
    clock.advance(Seconds{50});
    journal->mark(150);
  }
  clock.advance(Seconds{10});
  const auto journal = begin();
  journal->restored(prefix(), 100);
  journal->training(100);
  clock.advance(Seconds{20});
  const RunHistory history = journal->history();
  EXPECT_NEAR(history.breakdown().training.count(), 148, 0.01);
  EXPECT_NEAR(history.breakdown().saving.count(), 2, 0.01);
  EXPECT_NEAR(history.breakdown().redone.count(), 20, 0.01) << "until now, though nothing was noted";
  EXPECT_NEAR(history.breakdown().stopped.count(), 10, 0.01);
  EXPECT_EQ(history.sums().runs, 2);
  EXPECT_EQ(history.sums().save_cost, Seconds{3});
}

TEST_F(RunJournalTest, WhatWasNotedIsThereAfterAKill) {
  const auto journal = begin();
  journal->initialised(0);
  journal->training(1);
  EXPECT_THAT(text(), HasSubstr("began"));
  EXPECT_THAT(text(), HasSubstr("training"));
  clock.advance(Seconds{5});
  journal->mark(7);
  EXPECT_EQ(on_disk().sums().step, 7);
  EXPECT_EQ(on_disk().breakdown().training, Seconds{5});
}

TEST_F(RunJournalTest, SavesThatFailAllTheTimeAreALineForEachOtherEventAtMost) {
  const auto journal = begin();
  journal->training(1);
  const auto failed = [&](int64_t in_a_row) { journal->save_failed(in_a_row, 7, "No space left"); };
  const size_t operations = files.operations().size();
  const std::string before = text();
  for (int i = 1; i <= 1000; ++i) failed(i);
  EXPECT_EQ(files.operations().size(), operations) << "they make no call of the file system";
  EXPECT_EQ(journal->history().runs().back().failed_saves.in_a_row, 1000) << "though this process knows them";
  journal->mark(8);
  EXPECT_EQ(on_disk().runs().back().failed_saves.in_a_row, 1000);
  EXPECT_LT(text().size(), before.size() + 200);
  failed(1001);
  journal->saved(prefix(), 100, {});
  EXPECT_EQ(on_disk().runs().back().failed_saves, (FailedSaves{.in_all = 1001}));
}

TEST_F(RunJournalTest, OnAFullDiskFailedSavesAreWrittenOnceThereIsRoom) {
  const auto journal = begin();
  journal->training(1);
  files.fail_writes_after(0);
  for (int i = 1; i <= 5; ++i) EXPECT_NO_THROW(journal->save_failed(i, 7, "No space left"));
  EXPECT_EQ(on_disk().runs().back().failed_saves.in_a_row, 0);
  files.heal();
  clock.advance(Seconds{5});
  journal->mark(8);
  EXPECT_EQ(on_disk().runs().back().failed_saves.in_a_row, 5);
  EXPECT_EQ(on_disk().runs().back().failed_saves.error, "No space left");
}

TEST_F(RunJournalTest, OfAFailedSaveWithALongErrorTheFileHasTheCause) {
  const auto journal = begin();
  journal->training(1);
  journal->save_failed(1, 7, "/begin/" + std::string(5000, 'd') + ": No space left");
  journal->mark(8);
  EXPECT_THAT(on_disk().runs().back().failed_saves.error, ::testing::StartsWith("/begin/ddd"));
  EXPECT_THAT(on_disk().runs().back().failed_saves.error, ::testing::EndsWith("ddd: No space left"));
  EXPECT_EQ(on_disk(), parse_run_journal(format_run_history(on_disk())).history);
}

TEST_F(RunJournalTest, EveryTornTailIsReadUpToIt) {
  const auto journal = begin();
  journal->initialised(0);
  journal->training(1);
  clock.advance(Seconds{5});
  journal->mark(7);
  const std::string whole = text();
  int64_t before = 0;
  for (size_t size = 0; size <= whole.size(); ++size) {
    const ParsedJournal parsed = parse_run_journal(std::string_view(whole).substr(0, size));
    EXPECT_EQ(parsed.damaged_lines, 0);
    EXPECT_GE(parsed.history.sums().highest_step.value_or(0), before);
    before = parsed.history.sums().highest_step.value_or(0);
  }
  EXPECT_EQ(before, 7);
}

TEST_F(RunJournalTest, AFlippedByteCostsItsLineAlone) {
  {
    const auto journal = begin();
    journal->initialised(0);
    journal->training(1);
    for (int i = 2; i < 5; ++i) journal->mark(i);
  }
  const std::string whole = text();
  for (size_t i = whole.find('\n') + 1; i < whole.size(); ++i) {
    std::string flipped = whole;
    flipped[i] ^= 1;
    const ParsedJournal parsed = parse_run_journal(flipped);
    EXPECT_GE(parsed.history.sums().highest_step.value_or(0), whole[i] == '\n' ? 2 : 3) << i;
    EXPECT_LE(parsed.damaged_lines, 2) << i;
    EXPECT_TRUE(parsed.damaged_lines > 0 || i + 1 == whole.size()) << i;
  }
}

TEST_F(RunJournalTest, AllThatAHistoryKnowsIsInItsText) {
  die_after(prefix());
  die_after(prefix());
  die_after(directory.file("model.ckpt-50"));
  const auto journal = begin();
  journal->restored(directory.file("model.ckpt-7"), 7);
  journal->training(8);
  journal->saved(directory.file("model.ckpt-9"), 9, {.cost = Seconds{0.123456}});
  journal->stop_requested("SIGTERM", 12);
  const RunHistory history = journal->history();
  EXPECT_EQ(parse_run_journal(format_run_history(history)).history, history);
}

TEST_F(RunJournalTest, LostTimeIsRememberedUntilAModelIsRestored) {
  {
    const auto journal = begin();
    journal->initialised(std::nullopt);
    journal->training(1);
    clock.advance(Seconds{3});
    journal->interrupted(std::nullopt);
    journal->ended(std::make_exception_ptr(AbortedError("the session was lost")));
  }
  for (int i = 0; i < 3; ++i) {  // runs that are killed before that
    const auto journal = begin();
    EXPECT_NEAR(journal->history().uncounted().time.count(), 3, 0.01);
    EXPECT_EQ(journal->history().uncounted().after, 1);
    EXPECT_THAT(text(), HasSubstr(" uncounted "));
    EXPECT_EQ(on_disk().uncounted(), journal->history().uncounted());
  }
  const auto journal = begin();
  journal->restored(prefix(), 100);
  EXPECT_EQ(journal->history().uncounted(), Uncounted{});
  EXPECT_NEAR(journal->history().breakdown().redone.count(), 3, 0.01);
}

TEST_F(RunJournalTest, DamageIsNoObstacle) {
  for (const std::string& contents : {std::string(), std::string("\0\xff garbage\n\n\n", 13), std::string(5000, 'x')}) {
    put(contents);
    const auto journal = begin();
    EXPECT_EQ(journal->history().sums().runs, 1);
    EXPECT_EQ(on_disk().sums().runs, 1) << "it is replaced";
  }
}

TEST_F(RunJournalTest, DamagedLinesAreLogged) {
  begin();
  put(text() + "what is this\n");
  const LogRecorder log;
  EXPECT_EQ(begin()->history().sums().runs, 2);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("run.journal: 1 damaged lines are skipped"));
}

TEST_F(RunJournalTest, StaysSmall) {
  const auto journal = begin();
  journal->initialised(0);
  journal->training(0);
  size_t largest = 0;
  for (int i = 0; i < 20000; ++i) {
    clock.advance(Seconds{1});
    journal->mark(i);
    if (i % 100 == 0) largest = std::max(largest, text().size());
  }
  EXPECT_LE(largest, 300 * 1024);
  EXPECT_GT(largest, 100 * 1024);
  EXPECT_NEAR(on_disk().breakdown().training.count(), 20000, 1);
  EXPECT_EQ(on_disk().sums().runs, 1);
}

TEST_F(RunJournalTest, ACheckpointAfterWhichTwoRunsDiedIsPassedOver) {
  die_after(prefix());
  EXPECT_EQ(begin()->history().deaths_after("model.ckpt-100"), 1);
  die_after(prefix());
  const std::string why = begin()->skip_reason(prefix()).value_or("");
  EXPECT_THAT(why, HasSubstr("2 runs restored from it failed with an error or a crash of their own"));
  EXPECT_THAT(why, HasSubstr("name it in the file checkpoint, or set skip_crashing_checkpoints to false"));
  EXPECT_EQ(begin()->skip_reason(directory.file("model.ckpt-50")), std::nullopt);
}

TEST_F(RunJournalTest, OneThatWasNamedInTheStateFileSinceIsNotPassedOver) {
  die_after(prefix());
  die_after(prefix());
  write_checkpoint_state(files, directory.path(), {.model_checkpoint_path = prefix()});
  const auto last_note = std::filesystem::last_write_time(path());
  const auto begin_with_state_of = [&](std::filesystem::file_time_type time) {
    std::filesystem::last_write_time(directory.file(kDefaultStateFile), time);
    std::filesystem::last_write_time(path(), last_note);
    return begin();
  };
  EXPECT_NE(begin_with_state_of(last_note)->skip_reason(prefix()), std::nullopt);
  const auto journal = begin_with_state_of(last_note + std::chrono::seconds(1));
  EXPECT_EQ(journal->skip_reason(prefix()), std::nullopt);
  const LogRecorder log;
  journal->restored(prefix(), 100);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("is tried again, because the state file was edited to name it"));
}

TEST_F(RunJournalTest, KillsFromOutsidePassNothingOver) {
  for (int i = 0; i < 20; ++i) be_killed_after(prefix());
  EXPECT_EQ(begin()->skip_reason(prefix()), std::nullopt);
  EXPECT_EQ(on_disk().sums().interruptions, 20);
}

TEST_F(RunJournalTest, SignalsOfTheProcessItselfDo) {
  const LogRecorder log;
  crash_after(prefix());
  EXPECT_EQ(begin()->history().deaths_after("model.ckpt-100"), 1);
  EXPECT_THAT(log.text(LogLevel::kWarning),
              HasSubstr("the previous run crashed with signal 6 (Aborted); it had been restored from "
                        "model.ckpt-100"));
  be_killed_after(prefix());
  EXPECT_EQ(begin()->history().deaths_after("model.ckpt-100"), 1) << "a crash is counted once";
  crash_after(prefix());
  EXPECT_NE(begin()->skip_reason(prefix()), std::nullopt);
}

TEST_F(RunJournalTest, ACrashIsCountedOnceAlsoIfTheNextRunIsKilledAsItBegins) {
  crash_after(prefix());
  const std::string record = read_file(FileSystem::real(), path() + ".crash");
  begin();
  write_file_atomically(FileSystem::real(), path() + ".crash", record);
  EXPECT_EQ(begin()->history().deaths_after("model.ckpt-100"), 1);
}

TEST_F(RunJournalTest, WhatIsCalledACrashInJournalsOfBeforeHasNoWeight) {
  const auto line = [](const std::string& text) { return fmt::format("{:08x} {}\n", crc32c(text), text); };
  put("longhaul run journal 1\n" +
      line("sums stopped 1000 250 260 3 1 0.125 190.5 20.25 0.5 1.5 2.25 30 1 0 "
           "6e0c0d1b-8d0e-4f6e-9a0e-1a2b3c4d5e6f 60 100 model.ckpt-90") +
      line("crashed 2 230 model.ckpt-100") + line("crashed 1 - model.ckpt-100"));
  const ParsedJournal parsed = parse_run_journal(text());
  EXPECT_EQ(parsed.damaged_lines, 0);
  EXPECT_EQ(parsed.history.sums().highest_step, 260);
  EXPECT_EQ(parsed.history.sums().restored, "model.ckpt-90");
  EXPECT_EQ(parsed.history.breakdown().stopped, Seconds{30});
  EXPECT_EQ(begin()->skip_reason(prefix()), std::nullopt);
}

TEST_F(RunJournalTest, TheRecordOfCrashesGoesWithTheRun) {
  const auto journal = begin();
  EXPECT_TRUE(FileSystem::real().exists(path() + ".crash"));
  journal->ended();
  EXPECT_FALSE(FileSystem::real().exists(path() + ".crash"));
}

TEST_F(RunJournalTest, NoneIsPassedOverIfThatIsNotWanted) {
  skips = false;
  die_after(prefix());
  die_after(prefix());
  EXPECT_EQ(begin()->skip_reason(prefix()), std::nullopt);
}

TEST_F(RunJournalTest, TheLastOneLeftIsTriedAgainWithAWarning) {
  die_after(prefix());
  die_after(prefix());
  const LogRecorder log;
  begin()->restored(prefix(), 100);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model.ckpt-100 is tried again, because no other is left"));
}

TEST_F(RunJournalTest, AnErrorOfTheSurroundingsIsNotHeldAgainstTheCheckpoint) {
  const auto end_with = [&](const std::exception_ptr& error) {
    const auto journal = begin();
    journal->restored(prefix(), 100);
    journal->ended(error);
    return on_disk().deaths_after("model.ckpt-100");
  };
  EXPECT_EQ(end_with(std::make_exception_ptr(InternalError("diverged"))), 1);
  EXPECT_EQ(end_with(std::make_exception_ptr(ResourceExhaustedError("the disk is full"))), 1);
  EXPECT_EQ(end_with(std::make_exception_ptr(DirectoryLostError("another chief"))), 1);
  EXPECT_EQ(end_with(std::make_exception_ptr(std::runtime_error("a bug"))), 2);
  EXPECT_EQ(end_with(nullptr), 0);
}

TEST_F(RunJournalTest, WhereTheRunWasDisturbedNoErrorIsHeldAgainstTheCheckpoint) {
  const auto journal = begin();
  journal->restored(prefix(), 100);
  journal->ended(std::make_exception_ptr(InternalError("the disk is broken")), /*is_disturbed=*/true);
  EXPECT_EQ(on_disk().deaths_after("model.ckpt-100"), 0);
  EXPECT_EQ(on_disk().sums().interruptions, 1);
}

TEST_F(RunJournalTest, TheEndIsLoggedAndOnTheDisk) {
  const LogRecorder log;
  const auto journal = begin();
  journal->initialised(0);
  journal->training(0);
  clock.advance(Seconds{90});
  journal->ended();
  EXPECT_THAT(log.text(), HasSubstr(": 1 min 30 s in 1 run: 100.0 % goodput, 0.0 % redone"));
  EXPECT_EQ(files.operations().back(), "sync run.journal.new");
}

TEST_F(RunJournalTest, ARunWithoutAnyStepIsSaidToHaveNone) {
  const auto time_of_run = [&](bool trains) {
    const LogRecorder log;
    const auto journal = begin();
    journal->initialised(0);
    clock.advance(Seconds{10});
    if (trains) journal->training(1);
    journal->ended();
    return log.text();
  };
  const char* remark =
      "the global step was not seen to move in this run, so the time up to its end counts as initialising";
  EXPECT_THAT(time_of_run(/*trains=*/false), HasSubstr(remark));
  EXPECT_THAT(time_of_run(/*trains=*/true), Not(HasSubstr(remark)));
  EXPECT_THAT(time_of_run(/*trains=*/false), HasSubstr(remark)) << "of this run";
}

TEST_F(RunJournalTest, ClosedNothingIsNoted) {
  RunJournal journal(directory.path(), {.files = &files, .clock = &clock});
  EXPECT_EQ(journal.skip_reason(prefix()), std::nullopt);
  journal.training(1);
  journal.ended();
  EXPECT_THAT(files.operations(), ::testing::IsEmpty());
  journal.begin();
  journal.ended();
  const size_t before = files.operations().size();
  journal.mark(7);
  journal.ended(std::make_exception_ptr(InternalError("late")));
  EXPECT_EQ(files.operations().size(), before);
}

TEST_F(RunJournalTest, AFullDiskIsLoggedOnceAndCostsNothingButLines) {
  const auto journal = begin();
  const LogRecorder log;
  files.fail_writes_after(0);
  journal->initialised(0);
  journal->training(1);
  for (int i = 0; i < 10; ++i) journal->mark(i);
  const std::string lines = log.text(LogLevel::kWarning);
  EXPECT_THAT(lines, HasSubstr("cannot be written; training continues, and the write is retried"));
  EXPECT_EQ(lines.find("cannot be written"), lines.rfind("cannot be written"));
  files.heal();
  journal->mark(20);
  EXPECT_EQ(on_disk().sums().step, 20);
  EXPECT_EQ(on_disk(), parse_run_journal(text()).history);
  EXPECT_EQ(parse_run_journal(text()).damaged_lines, 0);
}

TEST_F(RunJournalTest, EveryFailureLeavesAJournal) {
  die_after(prefix());
  const size_t before = files.operations().size();
  die_after(prefix());
  const auto count = static_cast<int>(files.operations().size() - before);
  ASSERT_GT(count, 5);
  for (int n = 0; n < count; ++n) {
    for (const auto fault : {testing::FaultyFileSystem::Fault::kOnce, testing::FaultyFileSystem::Fault::kForGood}) {
      put("");
      die_after(prefix());
      files.fail_operation(n, fault);
      die_after(prefix());
      files.heal();
      EXPECT_GE(on_disk().sums().runs, 1) << n;
      EXPECT_EQ(begin()->history().deaths_after("model.ckpt-100") >= 1, true) << n;
    }
  }
}

TEST_F(RunJournalTest, AChiefWhoseDirectoryWasTakenDoesNotReplaceIt) {
  DirectoryLock lock(directory.path(), {.clock = &clock});
  OwnerRecord other = read_owner(FileSystem::real(), directory.path()).value();
  other.token = std::string(32, '7');
  write_owner(FileSystem::real(), directory.path(), other);
  EXPECT_THROW(begin(), DirectoryLostError);
  EXPECT_FALSE(FileSystem::real().exists(path()));
}

}  // namespace
}  // namespace longhaul
