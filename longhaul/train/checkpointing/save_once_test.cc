#include "longhaul/train/checkpointing/save_once.h"

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/reporting/event_lines_fixture.h"
#include "longhaul/train/saving/saver_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SaveOnceTest : public SaverFixture {
 protected:
  std::optional<std::string> save() { return save_once(target(), *session); }
  SaveTarget target() { return {saver, attempts, path, step, &writer}; }

  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  SaveAttempts attempts{{.max_failed_saves = 3, .clock = &passing}};
  testing::TemporaryDirectory logdir;
  FileWriter writer{logdir.path()};
  Saver saver{options};
};

TEST_F(SaveOnceTest, WhatWorksIsKnownAndTold) {
  EXPECT_EQ(save(), path + "-0");
  EXPECT_EQ(attempts.status().last_prefix, path + "-0");
  writer.close();
  EXPECT_THAT(describe(events_in_directory(logdir.path())), ElementsAre("version brain.Event:2", "CHECKPOINT"));
}

TEST_F(SaveOnceTest, ADirectoryInPlaceOfTheFilesBesideItIsAFailureAndNoEndOfTheTraining) {
  for (const char* name : {"checkpoint", "checkpoint.retention"}) {
    files.make_directories(directory.file(name));
    EXPECT_EQ(save(), std::nullopt);
    EXPECT_EQ(attempts.status().consecutive_failures, 1);
    EXPECT_THAT(attempts.status().last_error, HasSubstr(directory.file(name) + " is a directory"));
    files.remove(directory.file(name));
    EXPECT_EQ(save(), path + "-0");
    remove_checkpoint(files, path + "-0");
  }
}

TEST_F(SaveOnceTest, WithoutAStepEachOneIsNewThoughItHasTheSameName) {
  int told = 0;
  SaveTarget nameless = target();
  nameless.global_step = Output();
  nameless.costs = [&](const SaveReport&) { return ++told, SaveCosts(); };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(save_once(nameless, *session), path);
  EXPECT_EQ(told, 3);
}

TEST_F(SaveOnceTest, WhatIsNotWrittenAgainIsNotToldAgain) {
  int told = 0;
  SaveTarget numbered = target();
  numbered.costs = [&](const SaveReport&) { return ++told, SaveCosts(); };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(save_once(numbered, *session), path + "-0");
  EXPECT_EQ(told, 1);
}

// With the clock of a stop: each wait for the limit takes its time there.
TEST_F(SaveOnceTest, AStopLiftsTheLimitOfBytesPerSecondAndTheLastSaveHasNone) {
  options.max_bytes_per_second = 0.5;
  options.clock = &passing;
  options.name = "limited";
  Saver limited(options);
  const Coordinator coord({.clock = &passing});
  const auto time_of = [&](const char* name, const auto& save_it) {
    const Seconds start = passing.now();
    save_it(SaveTarget{.saver = limited,
                       .attempts = attempts,
                       .save_path = directory.file(name),
                       .global_step = step,
                       .pause = pause_until_stop(coord)});
    EXPECT_TRUE(exists(directory.file(name) + "-0"));
    return (passing.now() - start).count();
  };
  const auto once = [&](const SaveTarget& target) { save_once(target, *session); };
  EXPECT_GE(time_of("slow", once), 8) << "a float is waited for, at least";
  EXPECT_EQ(time_of("last", [&](const SaveTarget& target) { save_last(target, *session); }), 0);
  coord.request_stop();
  EXPECT_EQ(time_of("stopped", once), 0);
}

TEST_F(SaveOnceTest, AStopEndsTheWaitForTheLimit) {
  const Coordinator coord;
  const Pause pause = pause_until_stop(coord);
  EXPECT_TRUE(pause(Seconds{0}));
  coord.start_thread("stopper", [coord] { coord.request_stop(); });
  EXPECT_FALSE(pause(Seconds{3600}));
  coord.join();
}

TEST_F(SaveOnceTest, AFailureOfTheFilesIsReportedEverywhereAndNotThrown) {
  const LogRecorder log;
  files.fail_writes_after(0);
  EXPECT_EQ(save(), std::nullopt);
  EXPECT_EQ(attempts.status().consecutive_failures, 1);
  EXPECT_THAT(attempts.status().last_error, HasSubstr("No space left"));
  EXPECT_THAT(log.text(LogLevel::kError), AllOf(HasSubstr(path + "-0 could not be saved"), HasSubstr("No space left")));
  files.heal();
  EXPECT_EQ(save(), path + "-0");
  EXPECT_EQ(attempts.status().consecutive_failures, 0);
  writer.close();
  const auto events = events_in_directory(logdir.path());
  EXPECT_THAT(describe(events), ElementsAre("version brain.Event:2", "?", "summary checkpoint/failed_saves=1 @0",
                                            "summary checkpoint/failed_saves=0 @0", "CHECKPOINT"));
  EXPECT_THAT(events[1].log_message().message(), HasSubstr("could not be saved (failure 1 in a row)"));
}

TEST_F(SaveOnceTest, TheJournalKnowsThatSavesFailAndThatTheyWorkAgain) {
  testing::TemporaryDirectory other;
  RunJournal journal(other.path());
  journal.begin();
  const auto on_disk = [&] {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(other.path()))).history.runs().back();
  };
  SaveTarget target = this->target();
  target.journal = &journal;
  files.fail_writes_after(0);
  EXPECT_EQ(save_once(target, *session), std::nullopt);
  journal.mark(0);
  EXPECT_EQ(on_disk().failed_saves.in_a_row, 1);
  EXPECT_THAT(on_disk().failed_saves.error, HasSubstr("No space left"));
  EXPECT_EQ(on_disk().last_step, 0);
  files.heal();
  EXPECT_EQ(save_once(target, *session), path + "-0");
  EXPECT_EQ(on_disk().failed_saves, (FailedSaves{.in_all = 1}));
  attempts.failed(std::make_exception_ptr(ResourceExhaustedError("No space left")));
  journal.save_failed(1, 0, "No space left");
  EXPECT_EQ(save_once(target, *session), path + "-0") << "which is there";
  EXPECT_EQ(on_disk().failed_saves, (FailedSaves{.in_all = 2}));
  journal.ended();
}

TEST_F(SaveOnceTest, AFailureLeavesNoDebris) {
  save();
  const auto before = files.list(directory.path());
  session->run(ops::assign_add(root, step, ops::constant(root, int64_t{1})).op());
  for (const uint64_t room : {0, 10, 40, 200}) {
    files.fail_writes_after(room);
    EXPECT_EQ(save(), std::nullopt) << room;
    files.heal();
    EXPECT_EQ(files.list(directory.path()), before) << room;
    attempts.succeeded("");
  }
}

TEST_F(SaveOnceTest, TooManyInARowAreThrown) {
  files.fail_writes_after(0);
  EXPECT_EQ(save(), std::nullopt);
  EXPECT_EQ(save(), std::nullopt);
  EXPECT_THROW(save(), ResourceExhaustedError);
}

TEST_F(SaveOnceTest, WhatTheSessionThrowsIsNoFailureOfASave) {
  session->before_each_run([](int, const Session::Request&) { throw AbortedError("the session is lost"); });
  EXPECT_THROW(save(), AbortedError);
  EXPECT_EQ(attempts.status().consecutive_failures, 0);
}

TEST_F(SaveOnceTest, ADirectoryThatIsTakenAlwaysEndsIt) {
  const DirectoryLock lock(directory.path());
  OwnerRecord stranger = lock.owner();
  stranger.token = std::string(32, 'e');
  write_owner(FileSystem::real(), directory.path(), stranger);
  EXPECT_THROW(save(), DirectoryLostError);
  EXPECT_EQ(attempts.status().consecutive_failures, 0);
}

TEST_F(SaveOnceTest, TheLastOneIsTriedAgain) {
  BadDisk disk;
  int failures = 2;
  disk.before_rename = [&](const std::string&, const std::string&) {
    if (--failures >= 0) throw PermissionDeniedError("Read-only file system");
  };
  options.files = &disk;
  Saver last(options);
  const Seconds start = passing.now();
  EXPECT_EQ(save_last({last, attempts, path, step, nullptr}, *session), path + "-0");
  EXPECT_EQ(passing.now() - start, Seconds{1 + 2});
}

TEST_F(SaveOnceTest, TheLastOneThatFailsIsAnError) {
  files.fail_writes_after(0);
  SaveAttempts patient({.clock = &passing});
  EXPECT_THAT(error_of([&] { save_last({saver, patient, path, step, nullptr}, *session); }),
              AllOf(HasSubstr("the last checkpoint could not be saved"), HasSubstr("No space left")));
}

}  // namespace
}  // namespace longhaul
