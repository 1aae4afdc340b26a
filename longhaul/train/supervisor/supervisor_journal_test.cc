#include "longhaul/testing/faulty_file_system.h"
#include "longhaul/train/bad_disk_fixture.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/supervisor/journal_service.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// What a Supervisor remembers of its runs.
class SupervisorJournalTest : public SupervisorFixture {
 protected:
  SupervisorJournalTest() {
    add_step();
    options.files = &files;
    options.save_summaries_secs = Seconds{0};
  }
  void make_steps(Session& session, int count) {
    for (int i = 0; i < count; ++i) session.run(train);
  }
  void run_steps(int count) {
    restart();
    Supervisor sv(options);
    sv.managed_session([&](Session& session) { make_steps(session, count); });
  }
  // Restores, makes a step and dies of it, before there is a new checkpoint.
  std::string die() {
    restart();
    Supervisor sv(options);
    EXPECT_THROW(sv.managed_session([&](Session& session) {
      make_steps(session, 1);
      throw InternalError("the loss is not a number");
    }),
                 InternalError);
    return base_name(sv.restored_from());
  }
  RunHistory history() {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history;
  }
  bool has_journal() { return FileSystem::real().exists(journal_path(directory.path())); }
  // Time moves on, by a little, until it has happened.
  template <typename Condition>
  void as_time_passes(Condition condition) {
    eventually([&] {
      clock.advance(Seconds{0.1});
      return condition();
    });
  }

  testing::FaultyFileSystem files;
};

TEST_F(SupervisorJournalTest, RemembersHowARunWent) {
  run_steps(3);
  EXPECT_EQ(history().sums().runs, 1);
  EXPECT_EQ(history().sums().phase, RunHistory::Phase::kStopped);
  EXPECT_EQ(history().sums().interruptions, 0);
  EXPECT_EQ(history().sums().step, 3) << "as the last checkpoint says";
  EXPECT_TRUE(history().sums().has_saved);
}

TEST_F(SupervisorJournalTest, TellsAtTheEndWhereTheTimeWent) {
  const LogRecorder log;
  const Seconds begin = clock.now();
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return history().sums().has_saved; });
    as_time_passes([&] {  // the service that looks for steps may begin after some
      make_steps(session, 1);
      return history().sums().phase == RunHistory::Phase::kTraining;
    });
    const Seconds before = history().breakdown().training;
    const Seconds rest = begin + Seconds{10000} - clock.now();
    clock.advance(rest);
    eventually([&] { return history().breakdown().training > before + rest - Seconds{1}; });
  });
  EXPECT_THAT(log.text(), HasSubstr("2 h 46 min in 1 run: "));
  EXPECT_THAT(log.text(), HasSubstr("% goodput, 0.0 % redone"));
  EXPECT_GT(history().breakdown().goodput(), 90);
}

TEST_F(SupervisorJournalTest, MarksHowFarItHasCome) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    eventually([&] { return history().sums().has_saved; });
    make_steps(session, 1);
    as_time_passes([&] { return history().sums().step == 1; });
    make_steps(session, 6);
    as_time_passes([&] { return history().sums().step == 7; });
  });
}

TEST_F(SupervisorJournalTest, StepsAfterAStopAreTrainingAndNotSaving) {
  options.save_model_secs = Seconds{0};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    as_time_passes([&] {
      make_steps(session, 1);
      return history().sums().phase == RunHistory::Phase::kTraining;
    });
    sv.request_stop();
    eventually([&] { return history().sums().stop_requested; });
    const RunHistory before = history();
    make_steps(session, 5);
    eventually([&] {
      clock.advance(Seconds{5});
      return history().sums().step >= *before.sums().step + 5;
    });
    EXPECT_GE(history().breakdown().training, before.breakdown().training + Seconds{5});
  });
  EXPECT_EQ(history().breakdown().saving, Seconds{0});
}

TEST_F(SupervisorJournalTest, TellsHowMuchOfTheTrainingIsInNoCheckpoint) {
  options.save_model_secs = Seconds{0};
  int steps = 0;
  const auto train_unsaved = [&](bool dies) {
    restart();
    steps += 1000;  // more than the run before, or all of them are redone
    const LogRecorder log;
    Supervisor sv(options);
    const auto body = [&](Session& session) {
      as_time_passes([&] {
        make_steps(session, 1);
        return history().sums().phase == RunHistory::Phase::kTraining;
      });
      make_steps(session, steps);
      clock.advance(Seconds{1000});
      if (dies) throw InternalError("the loss is not a number");
    };
    const std::string error = error_of([&] { sv.managed_session(body); });
    EXPECT_EQ(error, dies ? "the loss is not a number" : "");
    return log.text();
  };
  EXPECT_THAT(train_unsaved(/*dies=*/true), HasSubstr("% in no checkpoint"));
  options.services.save_at_end = false;
  EXPECT_THAT(train_unsaved(/*dies=*/false), HasSubstr("% in no checkpoint"));
  options.services.save_at_end = true;
  EXPECT_THAT(train_unsaved(/*dies=*/false), Not(HasSubstr("% in no checkpoint")));
}

TEST_F(SupervisorJournalTest, WritesTheGoodputAsAScalar) {
  options.save_summaries_secs = Seconds{120};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    make_steps(session, 1);
    as_time_passes([&] {
      clock.advance(Seconds{5});
      sv.summary_writer()->flush();
      const auto lines = described_events();
      return std::any_of(lines.begin(), lines.end(),
                         [](const std::string& line) { return line.starts_with("summary longhaul/goodput="); });
    });
  });
}

TEST_F(SupervisorJournalTest, PassesOverACheckpointAfterWhichItDiedTwice) {
  run_steps(3);
  run_steps(2);
  EXPECT_EQ(die(), "model.ckpt-5");
  EXPECT_EQ(die(), "model.ckpt-5");
  const LogRecorder log;
  EXPECT_EQ(die(), "model.ckpt-3");
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("model.ckpt-5 is skipped"));
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("2 runs restored from it failed"));
  EXPECT_TRUE(exists(directory.file("model.ckpt-5"))) << "nothing is deleted";
}

TEST_F(SupervisorJournalTest, WhatIsPassedOverIsKeptUntilALaterStepIsSaved) {
  const auto has = [&](int step) { return exists(directory.file("model.ckpt-" + std::to_string(step))); };
  const auto run_and_save_every_second_step = [&](int count) {
    restart();
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      for (int i = 0; i < count; ++i) {
        make_steps(session, 2);
        sv.saver()->save(session, sv.save_path(), step);
      }
    });
  };
  run_steps(3);
  run_steps(21);
  die();
  die();
  run_and_save_every_second_step(7);
  EXPECT_TRUE(has(24)) << "though more than five were saved since";
  EXPECT_FALSE(has(5)) << "the others are deleted as ever";
  run_and_save_every_second_step(3);
  EXPECT_TRUE(has(24)) << "also in the run after that, which was restored from another one";
  run_and_save_every_second_step(9);
  EXPECT_FALSE(has(24)) << "later steps are saved";
}

TEST_F(SupervisorJournalTest, WhereAllWereCrashedAfterTheNewestIsTriedAgain) {
  options.save_model_secs = Seconds{0};
  run_steps(3);
  die();
  die();
  const LogRecorder log;
  EXPECT_EQ(die(), "model.ckpt-3");
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("is tried again, because no other is left"));
}

TEST_F(SupervisorJournalTest, TriesACheckpointAgainIfThatIsWanted) {
  options.chief.skip_crashing_checkpoints = false;
  run_steps(3);
  run_steps(2);
  die();
  die();
  EXPECT_EQ(die(), "model.ckpt-5");
}

TEST_F(SupervisorJournalTest, AStartThatFailsClearsNothing) {
  run_steps(3);
  die();
  install_session_factory([](const std::string&, Graph&, const SessionOptions&) -> std::unique_ptr<Session> {
    throw InternalError("there is no device");
  });
  {
    Supervisor sv(options);
    EXPECT_THROW(sv.prepare_or_wait_for_session(), InternalError);
  }
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 1);
  EXPECT_EQ(history().sums().interruptions, 2);
  EXPECT_EQ(history().sums().phase, RunHistory::Phase::kStopped);
}

TEST_F(SupervisorJournalTest, AnotherSessionEndsTheRunOfTheOneBefore) {
  run_steps(3);
  Supervisor sv(options);
  for (int i = 0; i < 3; ++i) {
    restart();
    sv.prepare_or_wait_for_session({.start_standard_services = false});
    EXPECT_EQ(base_name(sv.restored_from()), "model.ckpt-3");
  }
  EXPECT_EQ(history().sums().runs, 4);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 0);
  sv.stop();
  EXPECT_EQ(history().sums().phase, RunHistory::Phase::kStopped);
}

TEST_F(SupervisorJournalTest, AnErrorWhileSavesFailIsNotTheCheckpoints) {
  BadDisk disk;
  options.files = &disk;
  run_steps(3);
  disk.before_rename = [](const std::string&, const std::string& to) {
    if (to.find("model.ckpt") != to.npos) throw ResourceExhaustedError("no room");
  };
  restart();
  Supervisor sv(options);
  EXPECT_THROW(sv.managed_session([&](Session& session) {
    make_steps(session, 1);
    as_time_passes([&] {
      clock.advance(Seconds{10});
      return sv.save_status().consecutive_failures > 0;
    });
    throw InternalError("a buffer is full");
  }),
               InternalError);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 0);
  EXPECT_EQ(history().sums().interruptions, 1);
}

TEST_F(SupervisorJournalTest, ARunThatSavesClearsItsCheckpoint) {
  run_steps(3);
  die();
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 1);
  run_steps(2);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 0);
}

TEST_F(SupervisorJournalTest, AStopOfTheProgramIsNoDeath) {
  run_steps(3);
  options.services.save_at_end = false;
  run_steps(2);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 0);
  EXPECT_EQ(history().sums().interruptions, 0);
}

TEST_F(SupervisorJournalTest, ThereIsNoneWithoutALockOrIfItIsNotWanted) {
  options.chief.keep_journal = false;
  run_steps(1);
  EXPECT_FALSE(has_journal());
  options.chief.keep_journal = true;
  options.chief.lock.lock = false;
  run_steps(1);
  EXPECT_FALSE(has_journal());
}

TEST_F(SupervisorJournalTest, AJournalThatCannotBeWrittenDoesNotHurtTheTraining) {
  FileSystem::real().make_directories(journal_path(directory.path()) + ".new/occupied");
  const LogRecorder log;
  run_steps(3);
  EXPECT_TRUE(exists(directory.file("model.ckpt-3")));
  EXPECT_FALSE(has_journal());
  const std::string warnings = log.text(LogLevel::kWarning);
  EXPECT_THAT(warnings, HasSubstr("cannot be written; training continues, and the write is retried"));
  EXPECT_EQ(warnings.find("the write is retried"), warnings.rfind("the write is retried")) << "it is said once";
}

TEST_F(SupervisorJournalTest, AutoBeginsWithAShortIntervalAndThenChooses) {
  options.save_model_secs = kAuto;
  options.services.save_at_end = false;
  const LogRecorder log;
  Supervisor sv(options);
  EXPECT_TRUE(sv.save_model_secs().is_auto());
  sv.managed_session([&](Session& session) {
    eventually([&] { return exists(directory.file("model.ckpt-0")); });
    make_steps(session, 1);
    clock.advance(Seconds{29});
    make_steps(session, 1);
    clock.advance(Seconds{1.5});
    eventually([&] { return exists(directory.file("model.ckpt-2")); });
  });
  EXPECT_FALSE(exists(directory.file("model.ckpt-1")));
}

TEST_F(SupervisorJournalTest, AutoKnowsWhatSavesHaveCostBefore) {
  {
    RunJournal journal(directory.path(), {.clock = &clock});
    journal.begin();
    journal.saved("model.ckpt", std::nullopt, {.cost = Seconds{5}});
    journal.ended();
  }
  options.save_model_secs = kAuto;
  const LogRecorder log;
  Supervisor sv(options);
  sv.managed_session([&](Session&) { eventually([&] { return exists(directory.file("model.ckpt-0")); }); });
  EXPECT_EQ(history().sums().runs, 2);
  EXPECT_LT(history().sums().save_cost, Seconds{5}) << "one that cost nothing has been added";
}

}  // namespace
}  // namespace longhaul
