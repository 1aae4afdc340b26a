#include <thread>

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/reporting/event_lines_fixture.h"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// What a monitored training remembers of its runs.
class MonitoredJournalTest : public MonitoredFixture {
 protected:
  MonitoredJournalTest() {
    training = {.graph = &graph, .checkpoint_dir = directory.path(), .coordinator = coordinator};
  }
  // Makes so many steps, each of which takes a second, and returns the step that it began with.
  int64_t train_for(int steps, bool dies = false) {
    int64_t first = -1;
    monitored_training_session(training, [&](MonitoredSession& session) {
      first = session.run_step_fn([&](StepContext& context) { return context.session().run(step).item<int64_t>(); });
      restored = first;
      for (int i = 0; i < steps; ++i) {
        clock.advance(Seconds{1});
        session.run(train);
      }
      if (dies) throw InternalError("the loss is not a number");
    });
    return first;
  }
  int64_t die() {
    EXPECT_THROW(train_for(1, /*dies=*/true), InternalError);
    return restored;
  }
  RunHistory history() {
    return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history;
  }

  MonitoredTrainingSessionOptions training;
  int64_t restored = -1;
};

TEST_F(MonitoredJournalTest, TellsWhereTheTimeWent) {
  const LogRecorder log;
  train_for(100);
  clock.advance(Seconds{300});
  train_for(101);
  EXPECT_EQ(history().sums().runs, 2);
  EXPECT_EQ(history().sums().interruptions, 0);
  EXPECT_NEAR(history().breakdown().training.count(), 199, 0.1);
  EXPECT_NEAR(history().breakdown().initialising.count(), 2, 0.1);
  EXPECT_NEAR(history().breakdown().stopped.count(), 300, 0.1);
  EXPECT_THAT(log.text(), HasSubstr("8 min 21 s in 2 runs: 39.7 % goodput, 0.0 % redone"));
}

TEST_F(MonitoredJournalTest, StepsThatWereLostAreRedone) {
  train_for(10);
  EXPECT_THROW(train_for(21, /*dies=*/true), InternalError);
  const Seconds before = history().breakdown().training;
  train_for(31);
  EXPECT_NEAR(history().breakdown().redone.count(), 20, 0.1) << "from the first step of the new run to the last mark";
  EXPECT_NEAR((history().breakdown().training - before).count(), 10, 0.1);
  EXPECT_EQ(history().sums().interruptions, 1);
}

TEST_F(MonitoredJournalTest, StepsAfterAStopAreTrainingAndNotSaving) {
  monitored_training_session(training, [&](MonitoredSession& session) {
    for (int i = 0; i < 101; ++i) {
      clock.advance(Seconds{1});
      if (i == 50) coordinator.request_stop();
      session.run(train);
    }
  });
  EXPECT_NEAR(history().breakdown().training.count(), 100, 0.1);
  EXPECT_NEAR(history().breakdown().saving.count(), 0, 0.1);
}

TEST_F(MonitoredJournalTest, TellsHowMuchOfTheTrainingIsInNoCheckpoint) {
  training.save_checkpoint_steps = 50;
  const LogRecorder log;
  EXPECT_THROW(train_for(100 + 25, /*dies=*/true), InternalError);
  EXPECT_THAT(log.text(), HasSubstr("steps 101 to 125 are in no checkpoint"));
  EXPECT_THAT(log.text(), HasSubstr(" 19.8 % in no checkpoint"));
}

TEST_F(MonitoredJournalTest, PassesOverACheckpointAfterWhichItDiedTwice) {
  train_for(3);
  train_for(2);
  EXPECT_EQ(die(), 5);
  EXPECT_EQ(die(), 5);
  EXPECT_EQ(die(), 3);
  EXPECT_TRUE(checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-5"))) << "nothing is deleted";
  training.chief.skip_crashing_checkpoints = false;
  EXPECT_EQ(die(), 5);
}

TEST_F(MonitoredJournalTest, AStopOfTheProgramIsNoted) {
  training.save_checkpoint_secs = Seconds{600};
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    EXPECT_FALSE(history().sums().stop_requested);
    coordinator.request_stop();
    session.run(train);
    EXPECT_TRUE(history().sums().stop_requested);
  });
}

TEST_F(MonitoredJournalTest, AStopWhileARestartWaitsEndsTheRun) {
  const Operation loses = code([] { throw AbortedError("preempted"); });
  training.failures.restart.backoff = Seconds{1};  // of a clock that stands still
  const LogRecorder log;
  std::thread stopper([&] {
    eventually([&] { return log.text().find("restart 1 begins in 1 s") != std::string::npos; });
    coordinator.request_stop();
  });
  monitored_training_session(training, [&](MonitoredSession& session) {
    session.run(train);
    session.run(loses);
  });
  stopper.join();
  EXPECT_EQ(sessions, 1);
  EXPECT_EQ(history().sums().phase, RunHistory::Phase::kStopped);
}

TEST_F(MonitoredJournalTest, AnErrorWhileSavesFailIsNotTheCheckpoints) {
  train_for(3);
  training.failures.saves = std::make_shared<SaveAttempts>(SaveAttemptsOptions{.clock = &clock});
  const auto fail = [&](MonitoredSession& session) {
    session.run(train);
    training.failures.saves->failed(std::make_exception_ptr(ResourceExhaustedError("the disk is full")));
    throw InternalError("a buffer is full");
  };
  EXPECT_THROW(monitored_training_session(training, fail), InternalError);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 0);
  EXPECT_EQ(history().sums().interruptions, 1);
}

TEST_F(MonitoredJournalTest, TheEndOfASessionThatTheProgramMakesIsNotedToo) {
  train_for(3);
  {
    MonitoredSession session(monitored_session_options(training));
    const auto fail = [&] {
      session.run(train);
      throw InternalError("the loss is not a number");
    };
    EXPECT_THROW(session.monitor(fail), InternalError);
  }
  EXPECT_EQ(history().sums().phase, RunHistory::Phase::kStopped);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 1);
  {
    MonitoredSession never_closed(monitored_session_options(training));
    never_closed.run(train);
  }
  EXPECT_EQ(history().sums().phase, RunHistory::Phase::kStopped);
  EXPECT_EQ(history().deaths_after("model.ckpt-3"), 1);
  EXPECT_EQ(history().sums().interruptions, 2);
}

TEST_F(MonitoredJournalTest, WritesTheGoodputAsAScalar) {
  train_for(130);
  EXPECT_THAT(describe(events_in_directory(directory.path())), Contains(StartsWith("summary longhaul/goodput=")));
}

TEST_F(MonitoredJournalTest, ThereIsNoneWithoutALockWithoutCheckpointsOrIfItIsNotWanted) {
  const auto has_journal = [&] {
    train_for(1);
    return FileSystem::real().exists(journal_path(directory.path()));
  };
  training.chief.keep_journal = false;
  EXPECT_FALSE(has_journal());
  training.chief.keep_journal = true;
  training.chief.lock.lock = false;
  EXPECT_FALSE(has_journal());
  training.chief.lock.lock = true;
  training.save_checkpoint_secs = kNone;
  EXPECT_FALSE(has_journal());
  training.save_checkpoint_secs = kUseDefault;
  EXPECT_TRUE(has_journal());
}

TEST_F(MonitoredJournalTest, AutoChoosesTheIntervalByItself) {
  training.save_checkpoint_secs = kAuto;
  monitored_training_session(training, [&](MonitoredSession& session) {
    const auto is_saved = [&](int64_t at) {
      return checkpoint_exists(FileSystem::real(), directory.file("model.ckpt-" + std::to_string(at)));
    };
    EXPECT_TRUE(is_saved(0));
    for (int i = 0; i < 29; ++i) {
      clock.advance(Seconds{1});
      session.run(train);
    }
    EXPECT_FALSE(is_saved(29));
    clock.advance(Seconds{1});
    session.run(train);
    EXPECT_TRUE(is_saved(30)) << "saves that cost nothing are 30 s apart";
  });
}

TEST_F(MonitoredJournalTest, AutoBeginsWithWhatEarlierRunsHaveLearnt) {
  {
    RunJournal journal(directory.path(), {.clock = &clock});
    journal.begin();
    journal.saved("model.ckpt", std::nullopt, {.cost = Seconds{2}});
    EXPECT_NEAR(best_save_interval(journal.history()).count(), 588, 1);
    journal.ended();
  }
  training.save_checkpoint_secs = kAuto;
  train_for(1);
  EXPECT_EQ(history().sums().runs, 2);
  EXPECT_LT(history().sums().save_cost, Seconds{2});
}

}  // namespace
}  // namespace longhaul
