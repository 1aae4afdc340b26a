// Trainings whose runs end before their first checkpoint is due.
#include "longhaul/train/journal/first_interval.h"

#include "longhaul/checkpoint/files/checkpoint_files.h"
#include "longhaul/checkpoint/files/latest_checkpoint.h"
#include "longhaul/train/journal/run_journal.h"
#include "longhaul/train/journal/run_journal_format.h"
#include "longhaul/train/monitored/monitored_fixture.h"
#include "longhaul/train/monitored/monitored_training_session.h"
#include "longhaul/train/supervisor/supervisor_fixture.h"

namespace longhaul {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

RunHistory history_in(const testing::TemporaryDirectory& directory) {
  return parse_run_journal(read_file(FileSystem::real(), journal_path(directory.path()))).history;
}

class SupervisedShortRuns : public SupervisorFixture {
 protected:
  SupervisedShortRuns() {
    add_step();
    options.save_summaries_secs = Seconds{0};
    options.chief.skip_crashing_checkpoints = false;
  }
  // Makes steps for so long, and dies before it has saved any.
  void run_for(Seconds time) {
    restart();
    Supervisor sv(options);
    const auto body = [&](Session& session) {
      if (sv.restored_from().empty()) eventually([&] { return exists(directory.file("model.ckpt-0")); });
      make_steps_for(time, session);
      throw InternalError("the machine is taken away");
    };
    EXPECT_THROW(sv.managed_session(body), InternalError);
  }
  void make_steps_for(Seconds time, Session& session) {
    eventually([&] {  // its journal has seen a step
      session.run(train);
      clock.advance(Seconds{0.01});
      return history_in(directory).sums().phase == RunHistory::Phase::kTraining;
    });
    clock.advance(time);
  }
  // The run that begins now, with a shorter interval, saves a step when the one time has passed, or the other at the
  // latest. Returns what it warns of.
  std::string expect_save_between(Seconds earliest, Seconds latest) {
    const LogRecorder log;
    restart();
    Supervisor sv(options);
    sv.managed_session([&](Session& session) {
      const auto has_saved = [&] { return history_in(directory).sums().has_saved; };
      eventually([&] { return log.text(LogLevel::kWarning).find("of this run is due after") != std::string::npos; });
      make_steps_for(earliest, session);
      EXPECT_FALSE(has_saved());
      clock.advance(latest - earliest);
      eventually(has_saved);
    });
    return log.text(LogLevel::kWarning);
  }
};

TEST_F(SupervisedShortRuns, AreNamedAndTheFirstIntervalIsShortened) {
  for (const double seconds : {60, 40, 80}) run_for(Seconds{seconds});
  EXPECT_THAT(expect_save_between(Seconds{18}, Seconds{30}),
              AllOf(HasSubstr("the last 3 runs began at step 0 and ended before they saved a later checkpoint"),
                    HasSubstr("save_model_secs is 600, and the longest of them lasted 8"),
                    HasSubstr("The first checkpoint of this run is due after 2"), HasSubstr("Choose an interval")));
}

TEST_F(SupervisedShortRuns, TwoAreNone) {
  for (const double seconds : {60, 40}) run_for(Seconds{seconds});
  const LogRecorder log;
  restart();
  Supervisor(options).managed_session([](Session&) {});
  EXPECT_THAT(log.text(LogLevel::kWarning), Not(HasSubstr("this run is due after")));
}

TEST(FirstInterval, IsDoubledUntilItIsAsUsual) {
  EXPECT_EQ(next_interval_after_short_runs(Seconds{5}, Seconds{600}), Seconds{10});
  EXPECT_EQ(next_interval_after_short_runs(Seconds{299}, Seconds{600}), Seconds{598});
  EXPECT_EQ(next_interval_after_short_runs(Seconds{300}, Seconds{600}), std::nullopt);
  EXPECT_EQ(next_interval_after_short_runs(Seconds{1000}, std::nullopt), Seconds{2000});
  EXPECT_EQ(next_interval_after_short_runs(Seconds{2000}, std::nullopt), std::nullopt);
}

TEST(FirstInterval, IsNotSpokenOfWhereTheOptionIsAsShort) {
  const testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  RunJournal journal(directory.path(), {.clock = &clock});
  const auto run = [&](bool saves) {
    journal.begin();
    journal.restored("model.ckpt-7", 7);
    journal.training(8);
    clock.advance(Seconds{500});
    if (saves) journal.saved("model.ckpt-8", 8, {});
    journal.ended();
  };
  for (int i = 0; i < 3; ++i) run(false);
  run(true);
  journal.begin();
  journal.restored("model.ckpt-8", 8);
  const LogRecorder log;
  EXPECT_EQ(interval_after_short_runs(&journal, {"save_model_secs is 60", Seconds{60}}), std::nullopt);
  EXPECT_EQ(log.text(LogLevel::kWarning), "");
  EXPECT_EQ(interval_after_short_runs(&journal, {"save_model_secs is 600", Seconds{600}}), Seconds{250});
}

TEST(FirstInterval, IsNeverLongerThanTheOptionNorVeryShort) {
  const testing::TemporaryDirectory directory;
  testing::FakeClock clock;
  RunJournal journal(directory.path(), {.clock = &clock});
  const auto runs_of = [&](Seconds time) {
    for (int i = 0; i < 3; ++i) {
      journal.begin();
      journal.restored("model.ckpt-7", 7);
      journal.training(8);
      clock.advance(time);
      journal.ended();
    }
    journal.begin();
    journal.restored("model.ckpt-7", 7);
    return interval_after_short_runs(&journal, {"save_model_secs is 30", Seconds{30}});
  };
  EXPECT_EQ(runs_of(Seconds{4}), std::nullopt) << "they are too short for any save";
  const LogRecorder log;
  EXPECT_EQ(runs_of(Seconds{100}), Seconds{30});
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("look for failed saves in their logs"));
  EXPECT_EQ(runs_of(Seconds{6}), Seconds{5});
  EXPECT_EQ(interval_after_short_runs(nullptr, {"", Seconds{30}}), std::nullopt);
}

class MonitoredShortRuns : public MonitoredFixture {
 protected:
  MonitoredShortRuns() {
    training = {.graph = &graph,
                .checkpoint_dir = directory.path(),
                .chief = {.skip_crashing_checkpoints = false},
                .coordinator = coordinator};
  }
  // Makes a step in each second. Returns after how many of them there was a new checkpoint; 0: none.
  int run_for(int steps) {
    int saved = 0;
    const auto body = [&](MonitoredSession& session) {
      for (int i = 1; i <= steps; ++i) {
        session.run(train);
        clock.advance(Seconds{1});
        if (saved == 0 && history_in(directory).sums().has_saved) saved = i;
      }
      throw InternalError("the machine is taken away");
    };
    EXPECT_THROW(monitored_training_session(training, body), InternalError);
    return saved;
  }

  MonitoredTrainingSessionOptions training;
};

TEST_F(MonitoredShortRuns, AreNamedAndTheFirstIntervalIsShortened) {
  run_for(1);  // the first save of all is of the beginning
  for (const int steps : {60, 40, 80}) EXPECT_EQ(run_for(steps), 0);
  const LogRecorder log;
  EXPECT_EQ(run_for(60), 21);
  EXPECT_THAT(log.text(LogLevel::kWarning), AllOf(HasSubstr("save_checkpoint_secs is 600"), HasSubstr("after 20 s")));
}

TEST_F(MonitoredShortRuns, LoseHalfOfThemselvesAtMostAfterOneThatWasVeryShort) {
  run_for(1);
  for (const int steps : {6, 500, 500}) EXPECT_EQ(run_for(steps), 0);
  EXPECT_GT(run_for(500), 0);
  const int64_t saved = split_step(latest_checkpoint(FileSystem::real(), directory.path()).value()).step.value_or(0);
  EXPECT_GT(saved, 1 + 250);
}

TEST_F(MonitoredShortRuns, GoOnFromWhereTheShortIntervalsBringThem) {
  run_for(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run_for(60), 0);
  const LogRecorder log;
  for (int i = 0; i < 3; ++i) EXPECT_GT(run_for(60), 0) << "each run makes progress";
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("the previous runs lasted about 60 s, and save"));
}

TEST_F(MonitoredShortRuns, IntervalsInStepsAreShortenedToo) {
  training.save_checkpoint_steps = 1000;
  run_for(1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(run_for(60), 0);
  const LogRecorder log;
  EXPECT_GT(run_for(60), 0);
  EXPECT_THAT(log.text(LogLevel::kWarning), HasSubstr("save_checkpoint_steps is 1000"));
}

}  // namespace
}  // namespace longhaul
