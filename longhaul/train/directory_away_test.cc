// Trainings whose directory, or mirror, is not there for a while: unmounted, moved, with another one in its place.
#include <filesystem>

#include "longhaul/io/files/working_directory_fixture.h"
#include "longhaul/io/lock/directory_lock.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/saving/checkpoint_manager.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LogdirAwayTest : public SupervisorFixture {
 protected:
  LogdirAwayTest() {
    add_step();
    options.logdir = logdir;
  }
  void take_away(const std::string& place) { std::filesystem::rename(place, elsewhere); }
  void bring_back(const std::string& place) {
    std::filesystem::remove(place);  // only what is empty
    std::filesystem::rename(elsewhere, place);
  }
  template <typename Condition>
  void as_time_passes(Condition condition) {
    eventually([&] {
      clock.advance(Seconds{1});
      return condition();
    });
  }
  // What happens to a training while `in_its_place` stands for its directory, and after that is back.
  void train_while_away(const std::function<void()>& in_its_place, const std::string& expected_error) {
    const LogRecorder log;
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      eventually([&] { return sv.save_status().last_prefix == sv.save_path() + "-0"; });
      take_away(logdir);
      in_its_place();
      session.run(train);
      as_time_passes([&] {
        return sv.save_status().consecutive_failures >= 3 &&
               log.text().find("the heartbeat failed and is retried: ") != std::string::npos;
      });
      EXPECT_FALSE(sv.should_stop());
      EXPECT_THAT(sv.save_status().last_error, HasSubstr(expected_error));
      EXPECT_TRUE(!files.exists(logdir) || files.list(logdir).empty());
      bring_back(logdir);
      as_time_passes([&] { return sv.save_status().last_prefix == sv.save_path() + "-1"; });
      session.run(train);
    });
    EXPECT_TRUE(exists(sv.save_path() + "-2"));
    EXPECT_FALSE(files.exists(owner_path(logdir)));
    EXPECT_THAT(log.text(), Not(HasSubstr("silent for too long")));
  }

  FileSystem& files = FileSystem::real();
  const std::string logdir = directory.file("logdir"), elsewhere = directory.file("elsewhere");
};

TEST_F(LogdirAwayTest, TheTrainingGoesOnAndSavesWhenItIsBack) {
  train_while_away([] {}, logdir + ": the directory is gone");
}

TEST_F(LogdirAwayTest, AnotherOneInItsPlaceIsNamedAndNotWrittenTo) {
  train_while_away([&] { files.make_directories(logdir); }, logdir + ": another directory has this name now");
}

TEST_F(LogdirAwayTest, OneThatIsRemovedIsNotMadeAnewAndTheLastSaveSaysSo) {
  testing::FakeClock passing{testing::FakeClock::Waits::kPassTime};
  options.clock = &passing;
  options.save_model_secs = options.save_summaries_secs = Seconds{0};
  options.chief.lock.lease_secs = Seconds{1e9};  // whose heart would beat without pause on this clock
  options.stop_grace_secs = Seconds{1e15};
  Supervisor sv(options);
  const std::string error = error_of([&] {
    sv.managed_session([&](Session& session) {
      session.run(train);
      take_away(logdir);  // at once: what is written meanwhile would be in the way of remove_all()
      std::filesystem::remove_all(elsewhere);
    });
  });
  EXPECT_THAT(error, HasSubstr("the last checkpoint could not be saved: " + logdir + ": the directory is gone"));
  EXPECT_FALSE(files.exists(logdir));
}

TEST_F(LogdirAwayTest, ALaterSessionDoesNotBeginInItsPlace) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { session.run(train); });
  take_away(logdir);
  restart();
  EXPECT_THROW(sv.managed_session([](Session&) { FAIL(); }), DirectoryAwayError);
  EXPECT_FALSE(files.exists(logdir));
  bring_back(logdir);
  sv.managed_session([&](Session& session) { EXPECT_EQ(session.run(step).item<int64_t>(), 1); });
}

class MirrorAwayTest : public LogdirAwayTest, public ::testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Lock, MirrorAwayTest, ::testing::Bool());

TEST_P(MirrorAwayTest, OneThatIsUnmountedIsNotMadeAnewAndCopiedToWhenItIsBack) {
  const std::string mirror = directory.file("mirror");
  options.save_model_secs = Seconds{0};
  options.chief.mirror = {.directory = mirror, .lock = {.lock = GetParam()}};
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    const auto save = [&] {
      session.run(train);
      sv.saver()->save(session, sv.save_path(), step);
    };
    const auto fails = [&](int times) {
      as_time_passes([&] { return sv.mirror_status().consecutive_failures >= times; });
    };
    save();
    eventually([&] { return sv.mirror_status().last_prefix == mirror + "/model.ckpt-1"; });
    take_away(mirror);
    save();
    fails(2);
    EXPECT_FALSE(files.exists(mirror));
    files.make_directories(mirror);  // the place where it is mounted
    fails(4);
    EXPECT_THAT(files.list(mirror), IsEmpty());
    EXPECT_THAT(sv.mirror_status().last_error, HasSubstr(mirror));
    bring_back(mirror);
    as_time_passes([&] { return sv.mirror_status().last_prefix == mirror + "/model.ckpt-2"; });
  });
  EXPECT_TRUE(exists(mirror + "/model.ckpt-2"));
}

TEST_F(LogdirAwayTest, WhatIsCommittedIsMirroredAfterItsDirectoryIsBack) {
  const std::string mirror = directory.file("mirror");
  options.save_model_secs = Seconds{0};
  options.chief.mirror = {.directory = mirror};
  files.create(mirror)->close();  // for now no directory can be there
  Supervisor sv(options);
  sv.managed_session([&](Session& session) {
    session.run(train);
    sv.saver()->save(session, sv.save_path(), step);
    as_time_passes([&] { return sv.mirror_status().consecutive_failures >= 1; });
    take_away(logdir);
    as_time_passes([&] { return sv.mirror_status().consecutive_failures >= 3; });
    bring_back(logdir);
    files.remove(mirror);
    as_time_passes([&] { return sv.mirror_status().last_prefix == mirror + "/model.ckpt-1"; });
  });
}

class CheckpointDirAwayTest : public MonitoredFixture {
 protected:
  CheckpointDirAwayTest() {
    training = {.graph = &graph,
                .checkpoint_dir = place,
                .save_checkpoint_steps = 1,
                .failures = {.saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &clock}),
                             .restart = {.backoff = Seconds{0}}},
                .coordinator = coordinator};
  }
  void take_away() { std::filesystem::rename(place, elsewhere); }
  void bring_back() { std::filesystem::rename(elsewhere, place); }

  const std::string place = directory.file("place"), elsewhere = directory.file("elsewhere");
  MonitoredTrainingSessionOptions training;
};

TEST_F(CheckpointDirAwayTest, TheTrainingGoesOnAndSavesWhenItIsBack) {
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    take_away();
    for (int i = 0; i < 3; ++i) {
      clock.advance(Seconds{30});
      session.run(train);
    }
    EXPECT_FALSE(session.should_stop());
    EXPECT_GE(training.failures.saves->status().consecutive_failures, 3);
    EXPECT_FALSE(std::filesystem::exists(place));
    bring_back();
    clock.advance(Seconds{60});
    session.run(train);
    EXPECT_EQ(training.failures.saves->status().last_prefix, place + "/model.ckpt-5");
  });
}

TEST_F(CheckpointDirAwayTest, ASessionThatIsLostMeanwhileIsRestoredWhenItIsBackAndNotBegunAnew) {
  on_session = [&] {
    if (sessions == 2) bring_back();
  };
  bool is_lost = false;
  int64_t restored = -1;
  monitored_training_session(training, [&](MonitoredSession& session) {
    for (int i = 0; i < 2; ++i) session.run(train);
    session.run_step_fn([&](StepContext& context) {
      if (!std::exchange(is_lost, true)) {
        take_away();
        throw AbortedError("the server was restarted");
      }
      restored = context.session().run(step).item<int64_t>();
    });
  });
  EXPECT_EQ(restored, 2);
  EXPECT_EQ(sessions, 3);
}

TEST_F(CheckpointDirAwayTest, ASaveOfTheProgramsOwnThatFailsIsNoLossOfTheSession) {
  Saver own({.graph = &graph, .name = "own"});
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    take_away();
    const auto save = [&](StepContext& context) { own.save(context.session(), place + "/own", step); };
    EXPECT_THROW(session.run_step_fn(save), DirectoryAwayError);
    EXPECT_EQ(sessions, 1);
    bring_back();
    session.run_step_fn(save);
    session.run(train);
  });
  EXPECT_EQ(sessions, 1);
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), place + "/own-1"));
}

TEST_F(CheckpointDirAwayTest, TheLogTellsOfItLessAndLessOften) {
  const LogRecorder log;
  const auto times_in_log = [&](const std::string& text) {
    const std::string all = log.text();
    int times = 0;
    for (size_t at = all.find(text); at != all.npos; at = all.find(text, at + 1)) ++times;
    return times;
  };
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    take_away();
    while (training.failures.saves->status().consecutive_failures < 16) {
      clock.advance(Seconds{60});
      session.run(train);
    }
    EXPECT_EQ(times_in_log("could not be saved"), 5) << "failures 1, 2, 4, 8, 16";
    bring_back();
    clock.advance(Seconds{60});
    session.run(train);
    EXPECT_EQ(times_in_log("was saved after 16 failed saves"), 1);
  });
}

// Relative paths are those of the moment at which they are given.
class RelativePathsTest : public LogdirAwayTest {
 protected:
  // All that is in `directory`, by name.
  static std::string state(const std::string& directory) {
    return read_file(FileSystem::real(), join_path(directory, "checkpoint"));
  }

  testing::TemporaryDirectory other;
};

TEST_F(RelativePathsTest, ASupervisorsBodyMayChangeTheWorkingDirectory) {
  const WorkingDirectory home(directory.path());
  options.logdir = "logdir";
  options.chief.mirror.directory = "mirror";
  options.saver = std::make_shared<Saver>(SaverOptions{.graph = &graph, .max_to_keep = 1});
  Supervisor sv(options);
  {
    const WorkingDirectory there(other.path());
    sv.managed_session([&](Session& session) {
      eventually([&] { return sv.save_status().last_prefix == sv.save_path() + "-0"; });
      session.run(train);
    });
  }
  EXPECT_THAT(files.list(other.path()), IsEmpty());
  EXPECT_FALSE(exists("logdir/model.ckpt-0"));
  EXPECT_TRUE(exists("logdir/model.ckpt-1"));
  EXPECT_TRUE(exists("mirror/model.ckpt-1"));
  EXPECT_THAT(state("logdir"), AllOf(HasSubstr("\"model.ckpt-1\""), Not(HasSubstr(directory.path()))));
}

TEST_F(RelativePathsTest, ASaveByHandNamesItAsTheServicesDo) {
  const WorkingDirectory home(directory.path());
  options.logdir = "logdir";
  Supervisor sv(options);
  const auto session = sv.prepare_or_wait_for_session({.start_standard_services = false});
  sv.saver()->save(*session, sv.save_path(), 7);
  EXPECT_THAT(state("logdir"), AllOf(HasSubstr("\"model.ckpt-7\""), Not(HasSubstr(directory.path()))));
  sv.saver()->save(*session, other.file("m"), 8);
  EXPECT_THAT(state(other.path()), HasSubstr("\"" + other.file("m-8") + "\""));
  sv.stop();
}

TEST_F(RelativePathsTest, AnAbsoluteOneIsAbsoluteInTheStateFile) {
  Supervisor sv(options);
  sv.managed_session([&](Session& session) { session.run(train); });
  EXPECT_THAT(state(logdir), HasSubstr("\"" + logdir + "/model.ckpt-1\""));
}

TEST_F(RelativePathsTest, AMonitoredTrainingsBodyMayChangeTheWorkingDirectory) {
  const WorkingDirectory home(directory.path());
  monitored_training_session({.graph = &graph, .checkpoint_dir = "logdir", .summary_dir = "events"},
                             [&](MonitoredSession& session) {
                               const WorkingDirectory there(other.path());
                               session.run(train);
                             });
  EXPECT_THAT(files.list(other.path()), IsEmpty());
  EXPECT_TRUE(exists("logdir/model.ckpt-1"));
  EXPECT_THAT(state("logdir"), HasSubstr("\"model.ckpt-1\""));
}

TEST_F(RelativePathsTest, ASessionIsReplacedFromItsDirectoryWhereverTheProgramIs) {
  const WorkingDirectory home(directory.path());
  bool is_lost = false;
  int64_t restored = -1;
  monitored_training_session({.graph = &graph,
                              .checkpoint_dir = "logdir",
                              .save_checkpoint_steps = 1,
                              .failures = {.restart = {.backoff = Seconds{0}}}},
                             [&](MonitoredSession& session) {
                               session.run(train);
                               const WorkingDirectory there(other.path());
                               session.run_step_fn([&](StepContext& context) {
                                 if (!std::exchange(is_lost, true)) {
                                   restart();
                                   throw AbortedError("the server was restarted");
                                 }
                                 restored = context.session().run(step).item<int64_t>();
                               });
                             });
  EXPECT_EQ(restored, 1);
}

// A relative path of a save is that of the moment of the save; what it pushes out is where it was written.
TEST_F(RelativePathsTest, ASaverDeletesNothingInAnotherWorkingDirectory) {
  const WorkingDirectory home(directory.path());
  Saver saver({.graph = &graph, .max_to_keep = 1});
  const auto session = make_scripted_session(graph, server);
  session->run(step.initializer());
  const std::string first = saver.save(*session, "a/model", 1);
  files.make_directories(other.file("a"));
  files.create(other.file("a/model-1.index"))->close();
  const WorkingDirectory there(other.path());
  saver.save(*session, "b/model", 2);
  EXPECT_TRUE(files.exists(other.file("a/model-1.index")));
  EXPECT_FALSE(exists(directory.file(first)));
}

TEST_F(RelativePathsTest, ACheckpointManagerKeepsItsDirectory) {
  const WorkingDirectory home(directory.path());
  CheckpointManager manager({.directory = "kept", .saver = {.graph = &graph}});
  const auto session = make_scripted_session(graph, server);
  session->run(ops::global_variables_initializer(root));
  const WorkingDirectory there(other.path());
  manager.save(*session);
  EXPECT_TRUE(files.exists(directory.file("kept/checkpoint")));
  EXPECT_THAT(files.list(other.path()), IsEmpty());
}

}  // namespace
}  // namespace longhaul
